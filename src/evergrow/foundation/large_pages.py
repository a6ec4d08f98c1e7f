"""Large memory pages for arrays that processes share."""

from __future__ import annotations

import ctypes
import functools
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy.typing as npt

_LARGE_PAGE = 2 << 20

# Constants of sys/mman.h on Linux.
_PROT_NONE = 0
_MAP_PRIVATE, _MAP_ANONYMOUS, _MAP_NORESERVE = 0x02, 0x20, 0x4000
_MREMAP_MAYMOVE, _MREMAP_FIXED = 1, 2
_MADV_COLLAPSE = 25


def use_large_pages(array: npt.NDArray[Any]) -> None:
    """Ask the system to keep an array in shared memory in large pages, for all its readers.

    Rows that are read in random order need an address translation each, which takes a sixth of the
    time of growing trees on a virtual machine with small pages. Other systems than Linux since 6.1
    ignore the request, and so does a system without free large pages. Repeating it is cheap.
    """
    # An address that cannot be read or parsed is one that stays as it is.
    with suppress(OSError, ValueError):
        library = _c_library()
        if library is not None and array.nbytes >= 2 * _LARGE_PAGE:
            _collapse(library, array.ctypes.data, array.nbytes)


def _collapse(library: Any, address: int, n_bytes: int) -> None:
    offset = _file_offset(address)
    if offset is None:
        return
    # Only whole large pages of the file that hold nothing but the array.
    skipped = -offset % _LARGE_PAGE
    size = (n_bytes - skipped) // _LARGE_PAGE * _LARGE_PAGE
    if size <= 0:
        return
    # The system can only do it where address and offset are aligned alike, so the memory is
    # mapped a second time; its pages are the same.
    flags = _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_NORESERVE
    reserved = library.mmap(None, size + _LARGE_PAGE, _PROT_NONE, flags, -1, 0)
    if reserved == ctypes.c_void_p(-1).value:
        return
    try:
        aligned = -(-reserved // _LARGE_PAGE) * _LARGE_PAGE
        how = _MREMAP_MAYMOVE | _MREMAP_FIXED
        if library.mremap(address + skipped, 0, size, how, aligned) == aligned:
            library.madvise(aligned, size, _MADV_COLLAPSE)
    finally:
        library.munmap(reserved, size + _LARGE_PAGE)


def _file_offset(address: int) -> int | None:
    """Offset of an address in the shared file it is mapped from; None for other memory."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        extent, permissions, offset = line.split(maxsplit=3)[:3]
        first, _, end = extent.partition("-")
        if int(first, 16) <= address < int(end, 16):
            is_shared = permissions.endswith("s")
            return int(offset, 16) + address - int(first, 16) if is_shared else None
    return None


@functools.cache
def _c_library() -> Any:
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    if not all(hasattr(library, name) for name in ("mmap", "mremap", "madvise", "munmap")):
        return None
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.mmap.restype = library.mremap.restype = pointer
    library.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_long]
    library.mremap.argtypes = [pointer, size, size, number, pointer]
    library.madvise.argtypes = [pointer, size, number]
    library.munmap.argtypes = [pointer, size]
    return library
