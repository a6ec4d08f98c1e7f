"""Files of a data set, from a folder or from a tar archive.

Nothing is unpacked to disk: members are read by name, so links and paths to other places have no
effect.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from evergrow.foundation.errors import DatasetError
from evergrow.foundation.naming import display_name
from evergrow.research.datasets.formats.files import Budget

_GZIP = b"\x1f\x8b"
# Twice the size of the largest supported archive, and many times its number of files.
_MAX_UNPACKED = 512 << 20
_MAX_MEMBERS = 1000
_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE)


def read_files(files: Mapping[str, BinaryIO], budget: Budget) -> dict[str, bytes]:
    """Read the contents of open files."""
    contents = {}
    for name, file in files.items():
        n_bytes = os.fstat(file.fileno()).st_size
        budget.take(n_bytes, display_name(name))
        contents[name] = file.read(n_bytes)
    return contents


class _Bounded:
    """A file that raises an error if more is unpacked than allowed."""

    def __init__(self, file: Any, what: str) -> None:
        self._file = file
        self._left = _MAX_UNPACKED
        self._what = what

    def read(self, n_bytes: int) -> bytes:
        content: bytes = self._file.read(min(n_bytes, self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise DatasetError(f"{self._what} unpacks to more than {_MAX_UNPACKED} bytes")
        return content


def read_members(
    file: BinaryIO, wanted: Collection[str], budget: Budget, what: str
) -> dict[str, bytes]:
    """Read the wanted members that exist in a tar file, compressed or not."""
    compressed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    content: Any = gzip.GzipFile(fileobj=file) if compressed else file
    try:
        # As a stream, so that the limit counts every byte once.
        with tarfile.open(fileobj=_Bounded(content, what), mode="r|") as archive:  # type: ignore[call-overload]
            return _read_members(archive, wanted, budget, what)
    except DatasetError:
        raise
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise DatasetError(f"{what} is not a complete archive: {error}") from error


def _read_members(
    archive: tarfile.TarFile, wanted: Collection[str], budget: Budget, what: str
) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for place, member in enumerate(archive):
        if place >= _MAX_MEMBERS:
            raise DatasetError(f"{what} holds more than {_MAX_MEMBERS} files")
        name = str(PurePosixPath(member.name))
        if name not in wanted:
            continue
        if member.type not in _REGULAR:
            raise DatasetError(f"{display_name(name)} in {what} is not a regular file")
        if name in found:
            raise DatasetError(f"{what} holds {display_name(name)} twice")
        budget.take(member.size, f"{display_name(name)} in {what}")
        file = archive.extractfile(member)
        content = b"" if file is None else file.read()
        if len(content) != member.size:
            raise DatasetError(f"{display_name(name)} in {what} is truncated")
        found[name] = content
    return found
