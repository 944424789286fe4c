"""Keep freed memory in the process, so that steps reuse it.

By default glibc returns large blocks to the system as soon as they are freed, and the next step faults in every page
again: on two cores, a third of the time of a step with some megabytes of activations.
"""

from __future__ import annotations

import ctypes
import functools
import platform

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # of malloc.h
_NEVER = 2**31 - 1


@functools.cache
def keep_memory() -> bool:
    """Make glibc keep freed memory, once per process; return whether it did."""
    if platform.libc_ver()[0] != "glibc":
        return False
    library = ctypes.CDLL(None)
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, 2**26))
    return all(library.mallopt(name, value) for name, value in settings)
