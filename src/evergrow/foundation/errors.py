"""What Evergrow raises and warns of beyond Python's own and scikit-learn's errors."""

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "BadImage",
    "BadImageWarning",
    "CacheWarning",
    "ClusterError",
    "ClusterWarning",
    "DatasetError",
    "DatasetWarning",
    "ImageError",
    "ModelFileError",
    "ServiceError",
    "ShardError",
    "WorkspaceError",
]

_PACKAGE = str(Path(__file__).parents[1])


class ModelFileError(ValueError):
    """A model file is damaged, hostile, not ours, or from a newer version."""


class WorkspaceError(ValueError):
    """Something is wrong with a workspace, or with what it was asked to do."""


class ShardError(ValueError):
    """A folder of shards is damaged, incomplete, hostile, or its shards do not go together."""


class ClusterError(RuntimeError):
    """A cluster cannot be reached, cannot run this work, or gave it up."""


class ServiceError(RuntimeError):
    """A service refused a request or could not be reached; ``status`` is 0 if it was not reached.

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


class DatasetError(ValueError):
    """A file of a data set is damaged, hostile, incomplete, or not the one that was expected."""


class ImageError(ValueError):
    """An image cannot be read; ``source`` names it and ``reason`` says why.

    Examples
    --------
    >>> from evergrow import ImageError
    >>> str(ImageError("'cat.jpg'", "the file is empty"))
    "cannot read 'cat.jpg': the file is empty"
    """

    def __init__(self, source: str, reason: str) -> None:
        # Both are the error's arguments: it crosses the borders of processes whole.
        super().__init__(source, reason)
        self.source = source
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot read {self.source}: {self.reason}"


@dataclass(frozen=True)
class BadImage:
    """An image that could not be read, or a file that was not taken for one.

    Attributes
    ----------
    index : int or None
        Its place among the sources, counted from 0; None where files were looked for.
    source : str
        What it is called, with control characters written as escapes.
    reason : str
        Why it cannot be read.
    """

    index: int | None
    source: str
    reason: str

    def __str__(self) -> str:
        """Name and reason, for a person."""
        return f"{self.source}: {self.reason}"


class BadImageWarning(UserWarning):
    """Some images were left out because they could not be read."""


class CacheWarning(UserWarning):
    """What can be computed again could not be kept, or was damaged; results are not affected."""


class ClusterWarning(UserWarning):
    """Work that a cluster was asked for is done without it; results are not affected."""


class DatasetWarning(UserWarning):
    """Some of a data set cannot be used as the rest is."""


def warn_user(text: str, category: type[Warning]) -> None:
    """Warn of something at the line outside of this package that led to it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
