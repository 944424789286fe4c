"""What pytest cannot import everywhere: kernels, without the compiler that comes with torch for CUDA.

And one thread for every library, before any of them is loaded: each core has a worker with tests of its own, and
threads that wait for a core that somebody else has wait long.
"""

import importlib.util
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

collect_ignore = [] if importlib.util.find_spec("triton") else ["src/sundog/privacy/chacha_kernel.py"]
