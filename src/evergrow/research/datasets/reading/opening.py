"""Files of data sets, opened once and hashed before anything in them is believed."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import DatasetError
from evergrow.foundation.naming import name_of
from evergrow.foundation.params import Integer, check_parameters

__all__ = [
    "MAX_BYTES",
    "Budget",
    "Expected",
    "Opened",
    "checked_digest",
    "digest_of",
    "fill",
    "open_regular",
    "opened",
]

# One hash of everything, or one of each file by its name.
Expected = str | Mapping[str, str] | None

# More than the features of a million photographs; most computers have no more to spare.
MAX_BYTES = 8 << 30

_CHUNK_BYTES = 1 << 20
_HEXADECIMAL = re.compile("[0-9a-fA-F]{64}")


@dataclass
class Budget:
    """How much memory what is read may still take: a small file can claim to hold any amount."""

    left: int

    @classmethod
    def of(cls, max_bytes: int) -> Budget:
        """So many bytes; a ``ValueError`` for anything but a positive integer."""
        check_parameters({"max_bytes": max_bytes}, {"max_bytes": [Integer(1)]})
        return cls(max_bytes)

    def take(self, n_bytes: int, what: str) -> None:
        """Set bytes aside; a ``DatasetError`` if there are not so many left."""
        if n_bytes > self.left:
            raise DatasetError(
                f"{what} takes {n_bytes} bytes of memory, more than the {self.left} that are "
                "left: raise max_bytes if that is right"
            )
        self.left -= n_bytes


@dataclass(frozen=True)
class Opened:
    """Open files by their names, and the SHA-256 of all of them."""

    files: dict[str, BinaryIO]
    sha256: str


@contextmanager
def opened(paths: Mapping[str, Path], expected: Expected) -> Iterator[Opened]:
    """Open files and compare their hashes; they stay open, so what was hashed is what is read."""
    with ExitStack() as stack:
        files = {name: stack.enter_context(open_regular(path)) for name, path in paths.items()}
        digests = {name: digest_of(file) for name, file in files.items()}
        yield Opened(files, checked_digest(digests, expected))


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read; an error for anything but a regular one."""
    if path.is_dir():
        raise IsADirectoryError(f"cannot read {name_of(path)}: it is a folder, name a file")
    # Opening a pipe would wait for a writer that may never come.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise type(error)(f"cannot read {name_of(path)}: {reason}") from error
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise DatasetError(f"cannot read {name_of(path)}: it is not a regular file")
    return file


def digest_of(file: BinaryIO) -> str:
    """SHA-256 of a file from its beginning, where it stands afterwards."""
    file.seek(0)
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    file.seek(0)
    return digest.hexdigest()


def checked_digest(digests: Mapping[str, str], expected: Expected) -> str:
    """One hash for files, after comparing with what is expected of them.

    That of a single file is its own; that of several is what ``sha256sum`` says of its own list
    of them, in the order of their names.

    >>> checked_digest({"a": "0" * 64}, "1" * 64)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.DatasetError: the SHA-256 of 'a' is 000...000, expected 111...111
    """
    total = _joined(digests)
    if isinstance(expected, Mapping):
        unknown = sorted(set(expected) - set(digests))
        if unknown:
            raise ValueError(
                f"sha256 names files that are not read: {unknown[:5]}; "
                f"these are: {sorted(digests)[:10]}"
            )
        for name, wanted in expected.items():
            _compare(name_of(name), digests[name], wanted)
    elif expected is not None:
        whole = name_of(next(iter(digests))) if len(digests) == 1 else f"{len(digests)} files"
        _compare(whole, total, expected)
    return total


def _joined(digests: Mapping[str, str]) -> str:
    if len(digests) == 1:
        return next(iter(digests.values()))
    lines = (
        digest.encode() + b"  " + os.fsencode(name) for name, digest in sorted(digests.items())
    )
    return hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()


def _compare(what: str, found: str, wanted: object) -> None:
    if not isinstance(wanted, str) or not _HEXADECIMAL.fullmatch(wanted):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, got {wanted!r}")
    if found != wanted.lower():
        raise DatasetError(f"the SHA-256 of {what} is {found}, expected {wanted.lower()}")


def fill(array: npt.NDArray[Any], file: Any, what: str) -> None:
    """Read an array's bytes, piece by piece; a ``DatasetError`` where the file ends before."""
    content = array.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(content):
        n_read = file.readinto(content[done : done + _CHUNK_BYTES])
        if not n_read:
            raise DatasetError(
                f"{what} is cut off: it ends after {done} of {len(content)} bytes of values"
            )
        done += n_read
