"""Image files by the hash of their content, and small pictures of them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from evergrow.foundation.atomic import sync_folder, written_whole
from evergrow.foundation.errors import WorkspaceError
from evergrow.vision.images.thumbnails import make_thumbnail

__all__ = ["Images", "sha256_of"]


def sha256_of(content: bytes) -> str:
    """The name of an image file."""
    return hashlib.sha256(content).hexdigest()


class Images:
    """The folders of image files and thumbnails of a workspace."""

    def __init__(self, folder: Path) -> None:
        self._images = folder / "images"
        self._thumbnails = folder / "thumbnails"

    def path(self, sha256: str) -> Path:
        """Where an image file lies; folders by the first two letters keep each of them small."""
        return self._images / sha256[:2] / sha256

    def thumbnail_path(self, sha256: str) -> Path:
        """Where its thumbnail lies."""
        return self._thumbnails / sha256[:2] / f"{sha256}.jpg"

    def keep(self, sha256: str, content: bytes) -> bool:
        """Write an image file and return when it is on disk; False if it was there, and whole."""
        path = self.path(sha256)
        with contextlib.suppress(OSError):
            if path.read_bytes() == content:
                return False
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            sync_folder(self._images)
            sync_folder(self._images.parent)
        try:
            with written_whole(path) as file:
                file.write(content)
        except BaseException:
            # It may have its name already, and not be known to stay.
            path.unlink(missing_ok=True)
            raise
        return True

    def keep_thumbnail(self, sha256: str, content: bytes) -> None:
        """Write a thumbnail; it can be made again, so that a full disk does not matter."""
        path = self.thumbnail_path(sha256)
        aside = path.with_name(f".{secrets.token_hex(8)}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            aside.write_bytes(content)
            os.replace(aside, path)
        except OSError:
            aside.unlink(missing_ok=True)

    def content(self, sha256: str) -> bytes:
        """The bytes of an image file."""
        try:
            return self.path(sha256).read_bytes()
        except FileNotFoundError as error:
            raise WorkspaceError(
                f"the image file {sha256} is missing: put it back from a backup; "
                "what was learnt from it is not affected"
            ) from error

    def thumbnail(self, sha256: str, *, keep: bool) -> bytes:
        """The thumbnail of an image, made now if there is none."""
        try:
            content = self.thumbnail_path(sha256).read_bytes()
        except FileNotFoundError:
            content = b""
        # A power failure can leave an empty file: thumbnails are not synced.
        if not content:
            content = make_thumbnail(self.content(sha256))
            if keep:
                self.keep_thumbnail(sha256, content)
        return content

    def drop(self, sha256: str) -> None:
        """Remove an image file and its thumbnail."""
        self.path(sha256).unlink(missing_ok=True)
        self.thumbnail_path(sha256).unlink(missing_ok=True)

    def files(self) -> Iterator[Path]:
        """All files in the folder of images, ours or not."""
        for folder, _, names in os.walk(self._images):
            for name in names:
                yield Path(folder, name)

    def thumbnail_files(self) -> Iterator[Path]:
        """All files in the folder of thumbnails, ours or not."""
        for folder, _, names in os.walk(self._thumbnails):
            for name in names:
                yield Path(folder, name)
