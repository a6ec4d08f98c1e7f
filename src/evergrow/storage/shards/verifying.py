"""Whether files hold what their manifest says: read once in a process, or whenever asked.

A file whose hash was right is not read for it again while it stays the same file: its size, the
time of its last change and its inode say so.
"""

from __future__ import annotations

import hashlib
import os
import threading

import numpy as np

from evergrow.foundation.errors import ShardError
from evergrow.storage.shards.arrayfiles import ArrayFile, open_regular, read_chunks

__all__ = ["check_content", "check_once", "identity"]

# Bits of half precision that are all set in what is no finite number.
_HALF_EXPONENT = 0x7C00

Identity = tuple[int, int, int]

_known: dict[tuple[str, str], Identity] = {}
_lock = threading.Lock()


def identity(file: ArrayFile) -> Identity:
    """What changes when a file does; a ``ShardError`` if it is missing."""
    try:
        found = os.stat(file.path, follow_symlinks=False)
    except FileNotFoundError:
        raise ShardError(f"the shard {str(file.path)!r} is missing") from None
    return found.st_size, found.st_mtime_ns, found.st_ino


def check_once(file: ArrayFile) -> Identity:
    """Check a file unless this process has done so since it last changed."""
    key = (str(file.path), file.sha256)
    now = identity(file)
    if _known.get(key) != now:
        check_content(file)
        with _lock:
            _known[key] = now
    return now


def check_content(file: ArrayFile) -> None:
    """Read a file whole; a ``ShardError`` names it if its hash or a number in it is wrong."""
    hashed = hashlib.sha256()
    with open_regular(file.path) as opened:
        offset = file.read_header(opened)
        opened.seek(0)
        hashed.update(opened.read(offset))
        is_finite = True
        for chunk in read_chunks(opened):
            hashed.update(chunk)
            # A file that grows meanwhile may end within a number; its hash is wrong then.
            whole = len(chunk) // file.dtype.itemsize
            values = np.frombuffer(chunk, dtype=file.dtype, count=whole)
            is_finite = is_finite and _is_finite(values)
    if hashed.hexdigest() != file.sha256:
        raise file.wrong("its content does not match its SHA-256 checksum")
    if not is_finite:
        raise file.wrong("it holds numbers that are NaN or infinite")


def _is_finite(values: np.ndarray[tuple[int], np.dtype[np.generic]]) -> bool:
    if values.dtype.kind != "f" or not values.size:
        return True
    if values.dtype.itemsize == 2:
        exponents = values.view(np.uint16) & _HALF_EXPONENT
        return bool((exponents != _HALF_EXPONENT).all())
    # NaN is what is greatest and least wherever there is one.
    return bool(np.isfinite(values.max()) and np.isfinite(values.min()))
