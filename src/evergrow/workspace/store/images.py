"""Image files by the hash of their content, and their thumbnails."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from evergrow.foundation.atomic import atomic_write, sync_folder
from evergrow.foundation.errors import WorkspaceError
from evergrow.vision.images.thumbnails import make_thumbnail


def sha256_of(content: bytes) -> str:
    """The name of an image file."""
    return hashlib.sha256(content).hexdigest()


def sha256_of_file(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class ImageStore:
    """The folders of image files and thumbnails of a workspace."""

    def __init__(self, folder: Path) -> None:
        self._images = folder / "images"
        self._thumbnails = folder / "thumbnails"

    def path(self, sha256: str) -> Path:
        """Path of an image file; sub-folders by the first two letters keep each folder small."""
        return self._images / sha256[:2] / sha256

    def thumbnail_path(self, sha256: str) -> Path:
        """Path of the thumbnail of an image."""
        return self._thumbnails / sha256[:2] / f"{sha256}.jpg"

    def write(self, sha256: str, content: bytes) -> bool:
        """Write an image file to disk; False if it was there already and intact."""
        path = self.path(sha256)
        with contextlib.suppress(OSError):
            if path.read_bytes() == content:
                return False
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            sync_folder(self._images)
            sync_folder(self._images.parent)
        try:
            with atomic_write(path) as file:
                file.write(content)
        except BaseException:
            # It may have been renamed already, but not durably.
            path.unlink(missing_ok=True)
            raise
        return True

    def write_thumbnail(self, sha256: str, content: bytes) -> None:
        """Write a thumbnail, unless the disk is full: it can be made again at any time."""
        path = self.thumbnail_path(sha256)
        # Renamed but not synced, which would take longer than to make it again.
        temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(content)
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)

    def content(self, sha256: str) -> bytes:
        """The bytes of an image file."""
        try:
            return self.path(sha256).read_bytes()
        except FileNotFoundError as error:
            raise WorkspaceError(
                f"the image file {sha256} is missing: restore it from a backup; "
                "what was learnt from it is not affected"
            ) from error

    def thumbnail(self, sha256: str, *, store: bool) -> bytes:
        """The thumbnail of an image, made now if there is none; stored if ``store`` is true."""
        try:
            content = self.thumbnail_path(sha256).read_bytes()
        except FileNotFoundError:
            content = b""
        # A power failure can leave an empty file, because thumbnails are not synced.
        if not content:
            content = make_thumbnail(self.content(sha256))
            if store:
                self.write_thumbnail(sha256, content)
        return content

    def delete(self, sha256: str) -> None:
        """Delete an image file and its thumbnail."""
        self.path(sha256).unlink(missing_ok=True)
        self.thumbnail_path(sha256).unlink(missing_ok=True)

    def files(self) -> Iterator[Path]:
        """All files in the folder of images, including unknown ones."""
        return _files_below(self._images)

    def thumbnail_files(self) -> Iterator[Path]:
        """All files in the folder of thumbnails, including unknown ones."""
        return _files_below(self._thumbnails)


def _files_below(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        for name in names:
            yield Path(folder, name)
