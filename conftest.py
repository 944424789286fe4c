"""Settings for all tests.

Libraries use one thread, which must be set before they are imported: each core has its own worker, and threads of
several workers would wait for each other. CUDA kernels are collected only where triton is installed.
"""

import importlib.util
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

collect_ignore = [] if importlib.util.find_spec("triton") else ["src/sundog/privacy/chacha_kernel.py"]
