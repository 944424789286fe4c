"""What pytest cannot import everywhere: kernels, without the compiler that comes with torch for CUDA."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("triton") else ["src/sundog/privacy/chacha_kernel.py"]
