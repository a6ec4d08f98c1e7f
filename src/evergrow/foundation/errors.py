"""The errors and warnings that Evergrow raises.

:class:`EvergrowError` is the root. Below it, :class:`InvalidInputError` means that the input was
refused: bad parameters, labels, images, files or requests. The command line reports such an error
in one line and the service answers it with a 4xx, 503 or 507 status. :class:`ClusterError` and
:class:`ServiceError` report a cluster or a service that failed. Problems of the system, such as an
unreadable file or a missing package, are an ``OSError`` or ``ImportError``; a full disk is a
:class:`DiskFullError`, or a ``WorkspaceFullError`` in a workspace, and a full GPU a
:class:`DeviceMemoryError`. Any other exception, a
plain ``ValueError`` included, is a bug.
"""

import contextlib
import errno
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

# An error names at most this many images.
_MAX_NAMED_IMAGES = 10
# Frames that a warning skips: this package, and the context managers between its functions.
_SKIPPED = (str(Path(__file__).parents[1]), contextlib.__file__)


class EvergrowError(Exception):
    """Base class of all errors that Evergrow raises on purpose."""


class InvalidInputError(EvergrowError, ValueError):
    """The input was refused: the message says what was expected and what was given.

    It is a ``ValueError``, as scikit-learn's conventions ask.

    Examples
    --------
    >>> from evergrow import InvalidInputError, NCMForestClassifier
    >>> try:
    ...     NCMForestClassifier(n_estimators=0).fit([[0], [1]], ["a", "b"])
    ... except InvalidInputError as error:
    ...     print(error)
    n_estimators must be an integer from 1 to 65536, got 0
    """


class InvalidTypeError(InvalidInputError, TypeError):
    """The input was refused because of its type; it is a ``TypeError`` too."""


class ModelFileError(InvalidInputError):
    """A model file is damaged, malicious, of another kind, or of another format version."""


class WorkspaceError(InvalidInputError):
    """A workspace is damaged, cannot be used, or refused a change."""


class ShardError(InvalidInputError):
    """A folder of shards is damaged, incomplete or malicious, or its files do not match."""


class ClusterError(EvergrowError, RuntimeError):
    """A cluster cannot be reached, cannot run this work, or failed while running it."""


class ServiceError(EvergrowError, RuntimeError):
    """A service refused a request or was not reached; ``status`` is 0 if it was not reached.

    Examples
    --------
    >>> from evergrow import ServiceError
    >>> str(ServiceError(409, "there is nothing to undo"))
    'there is nothing to undo (409)'
    """

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.detail} ({self.status})" if self.status else self.detail


class DiskFullError(EvergrowError, OSError):
    """The disk of ``filename`` is full; ``disk`` is where that disk is mounted.

    It is an ``OSError``, as every problem of the system.

    Examples
    --------
    >>> from evergrow import DiskFullError
    >>> str(DiskFullError("/backup/model.evergrow", "/backup"))
    "the disk of '/backup/model.evergrow' (mounted at '/backup') is full: free some space"
    """

    def __init__(self, filename: str, disk: str) -> None:
        super().__init__(
            errno.ENOSPC, f"the disk of {filename!r} (mounted at {disk!r}) is full", filename
        )
        self.disk = disk

    def __str__(self) -> str:
        return f"{self.strerror}: free some space"

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (self.filename, self.disk)


class DeviceMemoryError(EvergrowError, MemoryError):
    """The memory of a GPU is exhausted; the model is unchanged.

    Examples
    --------
    >>> from evergrow import DeviceMemoryError
    >>> issubclass(DeviceMemoryError, MemoryError)
    True
    """


class DatasetError(InvalidInputError):
    """A file of a data set is damaged, malicious, incomplete, or not the expected one."""


@dataclass(frozen=True)
class BadImage:
    """An image that could not be read, or a file that is not an image.

    Attributes
    ----------
    index : int or None
        Index of the image in the input; None for a file found in a folder search.
    source : str
        Name of the image, with control characters written as escapes.
    reason : str
        Why it cannot be read.
    """

    index: int | None
    source: str
    reason: str

    def __str__(self) -> str:
        """Name and reason, for a person."""
        return f"{self.source}: {self.reason}"


class ImageError(InvalidInputError):
    """An image cannot be read; ``source`` names it and ``reason`` says why.

    ``more`` are further images of the same call that cannot be read, if these are known.

    Examples
    --------
    >>> from evergrow import BadImage, ImageError
    >>> str(ImageError("'cat.jpg'", "the file is empty"))
    "cannot read 'cat.jpg': the file is empty"
    >>> str(ImageError("'cat.jpg'", "it is empty", (BadImage(3, "'dog.jpg'", "it is truncated"),)))
    "cannot read 'cat.jpg': it is empty; 'dog.jpg': it is truncated"
    """

    def __init__(self, source: str, reason: str, more: tuple[BadImage, ...] = ()) -> None:
        # All are arguments of the error, so that it can be pickled between processes.
        super().__init__(source, reason, more)
        self.source = source
        self.reason = reason
        self.more = more

    @classmethod
    def of(cls, problems: Sequence[BadImage]) -> Self:
        """One error for all of these images, at least one.

        :meta private:
        """
        first, *more = problems
        return cls(first.source, first.reason, tuple(more))

    def __str__(self) -> str:
        named = [f"{self.source}: {self.reason}", *map(str, self.more)]
        hidden = len(named) - _MAX_NAMED_IMAGES
        end = f"; and {hidden} more, {len(named)} in all" if hidden > 0 else ""
        return f"cannot read {'; '.join(named[:_MAX_NAMED_IMAGES])}{end}"


class BadImageWarning(UserWarning):
    """Some images were skipped because they could not be read."""


class CacheWarning(UserWarning):
    """A cache could not be written or was damaged; results are not affected."""


class ClusterWarning(UserWarning):
    """Work runs in this process instead of on a cluster; results are not affected."""


class WorkspaceWarning(UserWarning):
    """Other users of the computer can read a workspace."""


class DatasetWarning(UserWarning):
    """Part of a data set was skipped or treated differently."""


def warn_user(text: str, category: type[Warning]) -> None:
    """Warn of something at the line outside of this package that led to it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_SKIPPED):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
