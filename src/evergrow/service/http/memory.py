"""Memory that is freed is kept for the next request, up to a limit."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["keep_freed_memory"]

# Names and values of the C library's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
# Above the arrays of a batch of images, below the largest requests.
_MMAP_BYTES = 8 << 20
_KEPT_BYTES = 64 << 20


def keep_freed_memory() -> bool:
    """Tell the C library not to give small pieces back to the system at once; whether it heard.

    To give the arrays of one batch back and to ask for those of the next takes time at every
    batch. Large pieces still go back, and so does whatever is beyond the limit.
    """
    if sys.platform != "linux":
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        # Another C library, which has other habits.
        return False
    wanted = {_M_MMAP_THRESHOLD: _MMAP_BYTES, _M_TRIM_THRESHOLD: _KEPT_BYTES}
    return all(set_option(option, n_bytes) == 1 for option, n_bytes in wanted.items())
