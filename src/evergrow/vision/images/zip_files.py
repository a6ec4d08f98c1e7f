"""Class folders in a zip file, unpacked for a while."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.files import open_regular
from evergrow.foundation.formatting import display_name, format_size, printable
from evergrow.vision.images.decoder import FOREIGN_SUFFIXES, SUFFIXES
from evergrow.vision.images.label_table import LABEL_TABLE
from evergrow.vision.images.sources import DEFAULT_LIMITS

StrPath = str | os.PathLike[str]

# Images hardly shrink. What grows more than this was made to fill the disk.
_MAX_GROWTH = 20
_CHUNK_BYTES = 1 << 20
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    EOFError,
    RuntimeError,
    UnicodeDecodeError,
)
# Others are rare, and LZMA takes as much memory as the file says.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Longer paths are refused by some systems.
_MAX_NAME_BYTES = 1000
# Windows takes them for the end of a folder and of a drive.
_NOT_IN_NAMES = frozenset("\\:")


@contextmanager
def unpack_images(path: StrPath) -> Iterator[Path]:
    """Unpack the images of a zip file, and their table, to a temporary folder.

    Nothing is written outside of this folder, whatever the names in the file. The folder of the
    class folders is returned, which may lie deeper in the file. It is removed at the end.

    Parameters
    ----------
    path : path
        A zip file, such as a download of the service.
    """
    with tempfile.TemporaryDirectory(prefix="evergrow-images-") as folder:
        try:
            with open_regular(path) as file, zipfile.ZipFile(file) as archive:
                _unpack(archive, Path(folder), os.fstat(file.fileno()).st_size)
        except _UNREADABLE as error:
            raise _refusal(path, str(error)) from error
        except OSError as error:
            # A place before the beginning of the file, where the file says that content is.
            if error.errno != errno.EINVAL:
                raise
            raise _refusal(path, "its list of files is damaged") from error
        yield _class_root(Path(folder))


def _refusal(path: StrPath, reason: str) -> InvalidInputError:
    return InvalidInputError(f"{display_name(path)} cannot be unpacked: {printable(reason)}")


def _unpack(archive: zipfile.ZipFile, folder: Path, n_bytes: int) -> None:
    found = [entry for entry in archive.infolist() if _is_wanted(entry)]
    if not found:
        raise zipfile.BadZipFile("it has no images")
    if all("/" not in entry.filename for entry in found):
        raise zipfile.BadZipFile("its images are not in folders, one for each class")
    total = sum(entry.file_size for entry in found)
    if total > _MAX_GROWTH * n_bytes:
        raise zipfile.BadZipFile(
            f"{format_size(n_bytes)} would become {format_size(total)}, which no images do"
        )
    for entry in found:
        target = folder.joinpath(*_safe_parts(entry))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, open(target, "xb") as copy:
                shutil.copyfileobj(source, copy, _CHUNK_BYTES)
        except (FileExistsError, NotADirectoryError):
            raise zipfile.BadZipFile(
                f"it has {entry.filename!r} twice, or a file in place of its folder"
            ) from None


def _is_wanted(entry: zipfile.ZipInfo) -> bool:
    """Whether an entry is an image, looks like one, or is the table of the labels."""
    parts = entry.filename.split("/")
    name = parts[-1]
    # Macs add files with the names of the images to a folder of their own.
    if entry.is_dir() or any(part.startswith((".", "__MACOSX")) for part in parts if part != ".."):
        return False
    suffix = os.path.splitext(name)[1].lower()
    return suffix in SUFFIXES | FOREIGN_SUFFIXES or name == LABEL_TABLE


def _safe_parts(entry: zipfile.ZipInfo) -> list[str]:
    """The parts of a name that stays in the folder; an error for any other name."""
    parts = entry.filename.split("/")
    strange = _NOT_IN_NAMES.intersection(entry.filename)
    is_long = len(entry.filename.encode(errors="replace")) > _MAX_NAME_BYTES
    if is_long or strange or any(part in ("", ".", "..") or not _is_name(part) for part in parts):
        raise zipfile.BadZipFile(f"{entry.filename!r} is not the name of a file in a folder")
    if entry.flag_bits & 1:
        raise zipfile.BadZipFile(f"{entry.filename!r} is encrypted")
    if entry.compress_type not in _METHODS:
        raise zipfile.BadZipFile(f"{entry.filename!r} is compressed by another method than Deflate")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise zipfile.BadZipFile(f"{entry.filename!r} is a link")
    if entry.file_size > DEFAULT_LIMITS.max_bytes and parts[-1] != LABEL_TABLE:
        raise zipfile.BadZipFile(f"{entry.filename!r} has {format_size(entry.file_size)}")
    return parts


def _is_name(part: str) -> bool:
    return all(ord(one) >= 32 for one in part) and len(part.encode(errors="replace")) <= 255


def _class_root(folder: Path) -> Path:
    """The folder of the class folders: a zip file often has one folder around all others."""
    inside = list(folder.iterdir())
    while len(inside) == 1 and inside[0].is_dir():
        deeper = list(inside[0].iterdir())
        if not any(one.is_dir() for one in deeper):
            # The only class.
            break
        folder, inside = inside[0], deeper
    return folder
