"""The members of a tar file: listed by their headers, read in place, never extracted.

Only what image data sets have is accepted: regular files and folders, with names of any length.
Links, devices and sparse files are refused.
"""

from __future__ import annotations

import gzip
import os
import re
import tempfile
import threading
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.files import open_regular
from evergrow.foundation.formatting import display_name, format_size

_BLOCK = 512
_OCTAL = re.compile(rb"[0-7]+")
_CHUNK_BYTES = 1 << 20
# Images hardly shrink. What grows more than this was made to fill the disk, unless it is small.
_MAX_GROWTH = 20
_SMALL_BYTES = 256 << 20
_MAX_MEMBERS = 10_000_000
# Headers of long names.
_MAX_EXTENSION = 1 << 16
_LONGEST_NAME = 1000
_REGULAR, _FOLDER = (b"0", b"\0", b"7"), b"5"
_GNU_NAME, _GNU_LINK, _PAX, _PAX_GLOBAL = b"L", b"K", b"x", b"g"
_EXTENSIONS = (_GNU_NAME, _GNU_LINK, _PAX, _PAX_GLOBAL)


@dataclass(frozen=True, slots=True)
class Member:
    """A regular file in a tar file: its name, and where its content is."""

    name: str
    offset: int
    n_bytes: int


class TarFile:
    """A tar file, perhaps compressed with gzip.

    A compressed one is decompressed once, to a temporary file without a name, because its images
    are read out of order.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))
        self._unpacked: BinaryIO | None = None
        self._lock = threading.Lock()
        with open_regular(path) as file:
            self._stamp = _stamp(file)
            if file.peek(2)[:2] == b"\x1f\x8b":
                self._unpacked = self._unpack(file)

    def __getstate__(self) -> dict[str, Any]:
        """Refuse to send a temporary file to another process."""
        if self._unpacked is not None:
            raise InvalidInputError(
                f"{display_name(self.path)} is compressed, so other processes cannot read it: "
                "decompress it first"
            )
        return {"path": self.path, "_unpacked": None, "_stamp": self._stamp}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def members(self) -> Iterator[Member]:
        """List the regular files in order; an error for anything that a data set does not have."""
        if self._unpacked is not None:
            yield from self._members(self._unpacked)
            return
        with open_regular(self.path) as file:
            yield from self._members(file)

    def read(self, member: Member) -> bytes:
        """The content of a member; threads may call this at the same time."""
        if self._unpacked is not None:
            with self._lock:
                self._unpacked.seek(member.offset)
                return self._unpacked.read(member.n_bytes)
        with open_regular(self.path) as file:
            if _stamp(file) != self._stamp:
                raise InvalidInputError("the tar file was changed meanwhile")
            file.seek(member.offset)
            return file.read(member.n_bytes)

    def _unpack(self, file: BinaryIO) -> BinaryIO:
        most = max(_MAX_GROWTH * os.fstat(file.fileno()).st_size, _SMALL_BYTES)
        unpacked = tempfile.TemporaryFile(prefix="evergrow-tar-")  # noqa: SIM115
        # Closed when the last image that refers to this object is gone.
        weakref.finalize(self, unpacked.close)
        try:
            with gzip.GzipFile(fileobj=file) as source:
                while chunk := source.read(_CHUNK_BYTES):
                    if unpacked.tell() + len(chunk) > most:
                        self._refuse(
                            f"it would become larger than {format_size(most)}, "
                            f"{_MAX_GROWTH} times its size: decompress it first"
                        )
                    unpacked.write(chunk)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._error(f"its compression is damaged: {error}") from error
        return unpacked

    def _members(self, file: BinaryIO) -> Iterator[Member]:
        n_members = 0
        extension: dict[str, str] = {}
        for header in self._headers(file):
            if header.kind in _EXTENSIONS:
                if header.n_bytes > _MAX_EXTENSION:
                    self._refuse(f"the header of a long name has {format_size(header.n_bytes)}")
                extension |= self._parse_extension(header.kind, file.read(header.n_bytes))
                continue
            name = extension.pop("path", header.name)
            n_members += 1
            if n_members > _MAX_MEMBERS:
                self._refuse(f"it has more than {_MAX_MEMBERS} members")
            if header.kind in _REGULAR:
                yield Member(self._checked_name(name), header.offset, header.n_bytes)
            elif header.kind != _FOLDER:
                self._refuse(f"{name!r} is a link, a device or of another kind")

    def _headers(self, file: BinaryIO) -> Iterator[_Header]:
        """Yield all headers; the file is at the content of the header that was yielded last."""
        end = file.seek(0, os.SEEK_END)
        at = 0
        while True:
            file.seek(at)
            block = file.read(_BLOCK)
            if not block:
                # Otherwise a file that ends after any of its members would look complete.
                self._refuse("it is truncated: the empty blocks at its end are missing")
            if not block.strip(b"\0"):
                return
            header = self._parse_header(block, at)
            if header.offset + header.n_bytes > end:
                self._refuse(f"it is truncated: {header.name!r} ends beyond it")
            yield header
            at = header.offset + -(-header.n_bytes // _BLOCK) * _BLOCK

    def _parse_header(self, block: bytes, at: int) -> _Header:
        if len(block) < _BLOCK:
            self._refuse("it is truncated within a header")
        # The checksum itself counts as spaces.
        summed = sum(block) - sum(block[148:156]) + 8 * 32
        if self._number(block[148:156], at) != summed:
            self._refuse(f"its header at byte {at} is damaged, or it is not a tar file")
        name = _text(block[:100])
        prefix = _text(block[345:500]) if block[257:263] == b"ustar\0" else ""
        kind = block[156:157]
        n_bytes = 0 if kind == _FOLDER else self._number(block[124:136], at)
        return _Header(f"{prefix}/{name}" if prefix else name, kind, at + _BLOCK, n_bytes)

    def _number(self, field: bytes, at: int) -> int:
        """A number in octal digits, or in binary if the first bit is set."""
        if field[0] & 0x80:
            found = int.from_bytes(field[1:], "big") if field[0] == 0x80 else -1
        else:
            digits = field.strip(b" \0") or b"0"
            found = int(digits, 8) if _OCTAL.fullmatch(digits) else -1
        if found < 0:
            self._refuse(f"its header at byte {at} is damaged, or it is not a tar file")
        return found

    def _parse_extension(self, kind: bytes, content: bytes) -> dict[str, str]:
        if kind == _GNU_NAME:
            return {"path": _text(content)}
        if kind == _GNU_LINK:
            return {}
        found: dict[str, str] = {}
        while content:
            length, _, rest = content.partition(b" ")
            size = int(length) if length.isdigit() and len(length) < 10 else 0
            record = rest[: size - len(length) - 1]
            key, equals, value = record.removesuffix(b"\n").partition(b"=")
            if size < 5 or not equals or size > len(content):
                self._refuse("an extended header is damaged")
            name = _text(key)
            if name.startswith("GNU.sparse"):
                self._refuse("it has a sparse file")
            if name == "size" and kind == _PAX:
                # Only for files of 8 GiB and more; no image is that large.
                self._refuse("it has a member of 8 GiB or more")
            # A name that holds for all members has no meaning here.
            if name == "path" and kind == _PAX:
                found[name] = _text(value)
            content = content[size:]
        return found

    def _checked_name(self, name: str) -> str:
        parts = [part for part in name.split("/") if part != "."]
        is_long = len(name) > _LONGEST_NAME
        if name.startswith("/") or ".." in parts or "" in parts or is_long or not parts:
            self._refuse(f"{name[:100]!r} is not the name of a file in a folder")
        return "/".join(parts)

    def _refuse(self, reason: str) -> NoReturn:
        raise self._error(reason)

    def _error(self, reason: str) -> InvalidInputError:
        return InvalidInputError(f"{display_name(self.path)} cannot be read: {reason}")


@dataclass(frozen=True)
class _Header:
    name: str
    kind: bytes
    # Where the content is.
    offset: int
    n_bytes: int


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _stamp(file: BinaryIO) -> tuple[int, int]:
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns
