"""Files of data sets, opened once and hashed before they are read."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import DatasetError, InvalidInputError
from evergrow.foundation.naming import display_name
from evergrow.foundation.params import Integer, check_parameters
from evergrow.foundation.regular_files import open_regular

# One hash of everything, or one per file name.
Expected = str | Mapping[str, str] | None

# Enough for the features of a million photographs.
MAX_BYTES = 8 << 30

_CHUNK_BYTES = 1 << 20
_HEXADECIMAL = re.compile("[0-9a-fA-F]{64}")


@dataclass
class Budget:
    """Memory limit: a small file can declare arrays of any size."""

    left: int

    @classmethod
    def of(cls, max_bytes: int) -> Budget:
        """Create a budget; raise ``InvalidInputError`` unless it is a positive integer."""
        check_parameters({"max_bytes": max_bytes}, {"max_bytes": [Integer(1)]})
        return cls(max_bytes)

    def take(self, n_bytes: int, what: str) -> None:
        """Reserve bytes; raise a ``DatasetError`` if too few are left."""
        if n_bytes > self.left:
            raise DatasetError(
                f"{what} needs {n_bytes} bytes of memory, but only {self.left} are "
                "left: increase max_bytes if the size is right"
            )
        self.left -= n_bytes


@dataclass(frozen=True)
class OpenFiles:
    """Open files by name, and the SHA-256 of all of them."""

    files: dict[str, BinaryIO]
    sha256: str


@contextmanager
def open_files(paths: Mapping[str, Path], expected: Expected) -> Iterator[OpenFiles]:
    """Open files and check their hashes; they stay open, so what was hashed is what is read."""
    with ExitStack() as stack:
        files = {name: stack.enter_context(open_file(path)) for name, path in paths.items()}
        digests = {name: digest_of(file) for name, file in files.items()}
        yield OpenFiles(files, checked_digest(digests, expected))


def open_file(path: Path) -> BinaryIO:
    """Open a regular file to read; an error that names it for anything else."""
    if path.is_dir():
        raise IsADirectoryError(f"cannot read {display_name(path)}: it is a folder, not a file")
    try:
        return open_regular(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise type(error)(f"cannot read {display_name(path)}: {reason}") from error
    except InvalidInputError as error:
        raise DatasetError(f"cannot read {display_name(path)}: {error}") from error


def digest_of(file: BinaryIO) -> str:
    """Return the SHA-256 of a file; its position is the beginning afterwards."""
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    file.seek(0)
    return digest


def checked_digest(digests: Mapping[str, str], expected: Expected) -> str:
    """Return one hash for all files, after comparing with the expected hashes.

    For a single file it is the hash of the file; for several, the hash of the list that
    ``sha256sum`` prints for them, sorted by name.

    >>> checked_digest({"a": "0" * 64}, "1" * 64)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.DatasetError: the SHA-256 of 'a' is 000...000, expected 111...111
    """
    total = _combine(digests)
    if isinstance(expected, Mapping):
        unknown = sorted(set(expected) - set(digests))
        if unknown:
            raise InvalidInputError(
                f"sha256 names files that are not read: {unknown[:5]}; "
                f"the files are: {sorted(digests)[:10]}"
            )
        for name, wanted in expected.items():
            _compare(display_name(name), digests[name], wanted)
    elif expected is not None:
        whole = display_name(next(iter(digests))) if len(digests) == 1 else f"{len(digests)} files"
        _compare(whole, total, expected)
    return total


def _combine(digests: Mapping[str, str]) -> str:
    if len(digests) == 1:
        return next(iter(digests.values()))
    lines = (
        digest.encode() + b"  " + os.fsencode(name) for name, digest in sorted(digests.items())
    )
    return hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()


def _compare(what: str, found: str, wanted: object) -> None:
    if not isinstance(wanted, str) or not _HEXADECIMAL.fullmatch(wanted):
        raise InvalidInputError(f"sha256 must be 64 hexadecimal digits, got {wanted!r}")
    if found != wanted.lower():
        raise DatasetError(f"the SHA-256 of {what} is {found}, expected {wanted.lower()}")


def fill(array: npt.NDArray[Any], file: Any, what: str) -> None:
    """Read the bytes of an array in chunks; raise a ``DatasetError`` if the file ends early."""
    content = array.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(content):
        n_read = file.readinto(content[done : done + _CHUNK_BYTES])
        if not n_read:
            raise DatasetError(
                f"{what} is truncated: it ends after {done} of {len(content)} bytes of values"
            )
        done += n_read
