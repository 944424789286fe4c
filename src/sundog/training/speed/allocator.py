"""Memory that is kept: a step allocates what the step before has freed.

By default glibc gives large blocks back to the system as soon as they are free, and the next step pays for every page
of them again: on two cores, a third of the time of a step whose activations are some megabytes.
"""

from __future__ import annotations

import ctypes
import functools
import platform

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # of malloc.h
_NEVER = 2**31 - 1


@functools.cache
def keep_memory() -> bool:
    """Asks the C library, once, to keep what is freed for this process; whether it understood."""
    if platform.libc_ver()[0] != "glibc":
        return False
    library = ctypes.CDLL(None)
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, 2**26))
    return all(library.mallopt(name, value) for name, value in settings)
