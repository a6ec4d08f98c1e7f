"""The zip format, written from front to back and without compression.

Pictures are compressed already. The size of the whole file is known before its first byte, so that
a download can say how long it is. Large files and many files follow the extension ZIP64. Nothing is
kept in memory: the central directory, which comes last, waits in a temporary file.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from datetime import datetime
from typing import Self

_LOCAL = struct.Struct("<IHHHHHIIIHH")
_CENTRAL = struct.Struct("<IHHHHHHIIIHHHHHII")
_END = struct.Struct("<IHHHHIIH")
_END64 = struct.Struct("<IQHHIIQQQQ")
_LOCATOR64 = struct.Struct("<IIQI")

_PLAIN_VERSION, _ZIP64_VERSION = 20, 45
# Made on Unix, whose modes of files are the upper half of the external attributes.
_UNIX = 3 << 8
_REGULAR_FILE = 0o100644 << 16
# Names are UTF-8.
_UTF8 = 1 << 11
_STORED = 0
_ZIP64 = 1
# These values say that the true one is in the extra field.
_MAX_16, _MAX_32 = 0xFFFF, 0xFFFFFFFF
_CHUNK_BYTES = 1 << 18
_IN_MEMORY = 1 << 20


class ZipStream:
    """Makes the headers of a zip file; the caller sends the content of files between them.

    Use it twice with the same files in the same order: first to learn the size, with any checksums,
    then to send. A context manager.

    Examples
    --------
    >>> import io, zlib, zipfile
    >>> from datetime import datetime
    >>> made, at = b"", datetime(2026, 11, 18)
    >>> with ZipStream() as archive:
    ...     for name, content in {"a.txt": b"one", "b/c.txt": b"two"}.items():
    ...         made += archive.add(name, len(content), zlib.crc32(content), at) + content
    ...     size = archive.n_bytes
    ...     made += b"".join(archive.end())
    >>> len(made) == size, zipfile.ZipFile(io.BytesIO(made)).read("b/c.txt")
    (True, b'two')
    """

    def __init__(self) -> None:
        self._directory = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._offset = 0
        self._n_files = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the temporary file."""
        self._directory.close()

    @property
    def n_bytes(self) -> int:
        """Size of the zip file if no further file is added."""
        directory_bytes = self._directory.tell()
        return self._offset + directory_bytes + len(self._end_records(directory_bytes))

    def add(self, name: str, n_bytes: int, checksum: int, at: datetime) -> bytes:
        """The header of the next file; its content must follow."""
        encoded = name.encode()
        is_large = n_bytes >= _MAX_32
        version = _ZIP64_VERSION if is_large else _PLAIN_VERSION
        shared = (version, _UTF8, _STORED, *_dos_time(at), checksum)
        sizes = (_MAX_32, _MAX_32) if is_large else (n_bytes, n_bytes)
        extra = _extra([n_bytes, n_bytes] if is_large else [])
        header = _LOCAL.pack(0x04034B50, *shared, *sizes, len(encoded), len(extra))
        header += encoded + extra
        self._add_to_directory(encoded, shared, sizes, n_bytes)
        self._offset += len(header) + n_bytes
        self._n_files += 1
        return header

    def _add_to_directory(
        self, name: bytes, shared: tuple[int, ...], sizes: tuple[int, int], n_bytes: int
    ) -> None:
        is_far = self._offset >= _MAX_32
        extra = _extra(
            ([n_bytes, n_bytes] if sizes[0] == _MAX_32 else []) + ([self._offset] if is_far else [])
        )
        version = _ZIP64_VERSION if extra else _PLAIN_VERSION
        record = _CENTRAL.pack(
            0x02014B50,
            _UNIX | version,
            version,
            *shared[1:],
            *sizes,
            len(name),
            len(extra),
            # No comment, on the first disk, no internal attributes.
            *(0, 0, 0),
            _REGULAR_FILE,
            min(self._offset, _MAX_32),
        )
        self._directory.write(record + name + extra)

    def end(self) -> Iterator[bytes]:
        """The end of the zip file, which lists all files."""
        directory_bytes = self._directory.tell()
        self._directory.seek(0)
        while chunk := self._directory.read(_CHUNK_BYTES):
            yield chunk
        yield self._end_records(directory_bytes)

    def _end_records(self, directory_bytes: int) -> bytes:
        n_files, start = self._n_files, self._offset
        counts = (min(n_files, _MAX_16),) * 2
        places = (min(directory_bytes, _MAX_32), min(start, _MAX_32))
        end = _END.pack(0x06054B50, 0, 0, *counts, *places, 0)
        if n_files < _MAX_16 and max(directory_bytes, start) < _MAX_32:
            return end
        versions = (_UNIX | _ZIP64_VERSION, _ZIP64_VERSION)
        # The size of this record, without its first twelve bytes.
        size = _END64.size - 12
        end64 = _END64.pack(
            0x06064B50, size, *versions, 0, 0, n_files, n_files, directory_bytes, start
        )
        locator = _LOCATOR64.pack(0x07064B50, 0, start + directory_bytes, 1)
        return end64 + locator + end


def _extra(values: list[int]) -> bytes:
    """The extra field of numbers that need 64 bits; nothing if there are none."""
    if not values:
        return b""
    return struct.pack(f"<HH{len(values)}Q", _ZIP64, 8 * len(values), *values)


def _dos_time(at: datetime) -> tuple[int, int]:
    """Time and date as zip files have them: two seconds exact, from 1980 to 2107."""
    year = min(max(at.year, 1980), 2107)
    date = (year - 1980) << 9 | at.month << 5 | at.day
    return at.hour << 11 | at.minute << 5 | at.second // 2, date
