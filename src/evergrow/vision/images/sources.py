"""Image sources: limits on their size, their content, and the packages that read them."""

from __future__ import annotations

import importlib
import os
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import ImageError, InvalidInputError
from evergrow.foundation.extras import install_command
from evergrow.foundation.files import open_regular
from evergrow.foundation.formatting import display_name

_MILLION = 1_000_000


def import_extra(
    name: str, extra: str = "vision", what: str = "images", package: str | None = None
) -> Any:
    """Import a module of an extra; the error says what needs it and what to install.

    Of an extra with much that is not needed, it names one package.

    >>> import_extra("no_such_module")
    Traceback (most recent call last):
    ...
    ImportError: images need the module no_such_module: pip install ...
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{what} need the module {name}: {install_command(extra, package)}"
        ) from error


@dataclass(frozen=True)
class ReadLimits:
    """The largest image to accept; larger ones are rejected before they are decoded.

    Parameters
    ----------
    max_pixels : int, default=100_000_000
        Maximum number of pixels, width times height. Raise it for scans and satellite images. An
        image takes 3 bytes of memory per pixel, and up to four times as much while it is converted.
    max_bytes : int, default=100_000_000
        Maximum size of an encoded image in bytes. Files are never read beyond it.

    Examples
    --------
    >>> from evergrow.vision import ReadLimits
    >>> ReadLimits(max_pixels=1_000_000)
    ReadLimits(max_pixels=1000000, max_bytes=100000000)
    """

    max_pixels: int = 100 * _MILLION
    max_bytes: int = 100 * _MILLION

    def __post_init__(self) -> None:
        for name in ("max_pixels", "max_bytes"):
            value = getattr(self, name)
            integral = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not integral or value < 1:
                raise InvalidInputError(f"{name} must be an integer of at least 1, got {value!r}")

    def check_size(self, width: int, height: int) -> None:
        """Raise a ``ValueError`` for an image without pixels or with too many."""
        if width < 1 or height < 1:
            raise InvalidInputError(f"it has no pixels: {width} x {height}")
        if width * height > self.max_pixels:
            raise InvalidInputError(
                f"it has {width} x {height} pixels, more than the limit of {self.max_pixels}"
            )

    def check_bytes(self, n_bytes: int) -> None:
        """Raise a ``ValueError`` for a file that is empty or too large."""
        if n_bytes < 1:
            raise InvalidInputError("it is empty")
        if n_bytes > self.max_bytes:
            raise InvalidInputError(f"it is larger than the limit of {self.max_bytes} bytes")


DEFAULT_LIMITS = ReadLimits()


class StoredImage(ABC):
    """An image inside of a larger file, which is read when it is needed, any number of times."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in messages and tables."""

    @abstractmethod
    def read_bytes(self, limits: ReadLimits) -> bytes:
        """The encoded image; a ``ValueError`` or ``OSError`` says why that is impossible."""


class UnreadableSource:
    """Replaces an open file that could not be read; reading it raises the same error again."""

    def __init__(self, error: ImageError) -> None:
        self._source, self._reason = error.source, error.reason

    def read(self, _: int) -> bytes:
        """Raise the error."""
        raise ImageError(self._source, self._reason)


def read_content(source: object, limits: ReadLimits) -> bytes | npt.NDArray[Any] | Any:
    """Read encoded bytes, an array or a Pillow image; an ``ImageError`` if that is impossible.

    Nothing is decoded yet: the bytes can be hashed, and take no more memory than on disk.
    """
    try:
        if isinstance(source, (str, os.PathLike)):
            return _file_bytes(source, limits)
        if isinstance(source, StoredImage):
            return source.read_bytes(limits)
        if isinstance(source, (bytes, bytearray, memoryview)):
            limits.check_bytes(memoryview(source).nbytes)
            return bytes(source)
        if isinstance(source, np.ndarray) or is_pillow(source):
            return source
        if callable(getattr(source, "read", None)):
            return _stream_bytes(source, limits)
        if hasattr(source, "__array__"):
            return np.asarray(source)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ImageError(display_name(source), reason) from error
    except ImageError:
        # The source already named itself and the reason.
        raise
    except ValueError as error:
        raise ImageError(display_name(source), str(error)) from error
    raise ImageError(
        display_name(source),
        "an image must be a path, bytes, a binary file, a Pillow image or an array, "
        f"got {type(source).__name__}",
    )


def read_content_once(source: Any, limits: ReadLimits) -> Any:
    """As :func:`read_content`; a source that cannot be read becomes an ``UnreadableSource``."""
    try:
        return read_content(source, limits)
    except ImageError as error:
        return UnreadableSource(error)


def is_pillow(source: object) -> bool:
    """Whether a source is an image of Pillow."""
    # If it is a Pillow image, Pillow is already imported.
    image_module = sys.modules.get("PIL.Image")
    return image_module is not None and isinstance(source, image_module.Image)


def _file_bytes(path: str | os.PathLike[str], limits: ReadLimits) -> bytes:
    with open_regular(path) as file:
        n_bytes = os.fstat(file.fileno()).st_size
        limits.check_bytes(n_bytes)
        # Reading up to the limit would allocate that much memory; the file is usually smaller.
        content = file.read(n_bytes + 1)
        if len(content) <= n_bytes:
            return content
        # The file grew in the meantime.
        file.seek(0)
        return _stream_bytes(file, limits)


def _stream_bytes(stream: Any, limits: ReadLimits) -> bytes:
    chunks, n_bytes = [], 0
    # A read may return less than is there. One byte beyond the limit shows that there is more.
    while n_bytes <= limits.max_bytes:
        chunk = stream.read(limits.max_bytes + 1 - n_bytes)
        if not isinstance(chunk, bytes):
            raise InvalidInputError("the file must be open in binary mode")
        if not chunk:
            break
        chunks.append(chunk)
        n_bytes += len(chunk)
    limits.check_bytes(n_bytes)
    return b"".join(chunks)
