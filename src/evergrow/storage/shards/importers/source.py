"""What a file of rows gives, which parts of it are meant, and what its damage is called."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from evergrow.foundation.errors import ShardError

__all__ = ["LABELS", "Block", "Keys", "Table", "saying_damaged"]

# Names of labels that are looked for where none is given.
LABELS = ("y", "label", "labels")

# Some rows and their labels; no labels where there are none.
Block = tuple[npt.NDArray[Any], list[Any] | None]

# What reading gives for content that is not as it was written: by files, by archives, and by each
# way of compressing.
_DAMAGED: tuple[type[Exception], ...] = (
    OSError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)


class Table(Protocol):
    """A file that gives rows."""

    @property
    def n_rows(self) -> int:
        """How many there are."""

    def blocks(self, n_skipped: int) -> Iterator[Block]:
        """Rows and labels but for the first few, some at a time.

        A ``ShardError`` for whatever is wrong with the file: it tells a bad file, of which nothing
        is kept, from a full disk.
        """


@dataclass(frozen=True)
class Keys:
    """Which parts of a file are meant; None for the usual ones."""

    features: str | None = None
    labels: str | None = None
    labels_file: str | None = None


@contextmanager
def saying_damaged(name: str, *more: type[Exception]) -> Iterator[None]:
    """Have what fails while content is read be a ``ShardError`` that names the content.

    Nothing but reading goes into the block. ``more`` are errors of the reader's own.
    """
    damaged: tuple[type[Exception], ...] = (*_DAMAGED, *more)
    try:
        yield
    except ShardError:
        raise
    except damaged as error:
        raise ShardError(f"{name} is damaged or cannot be read: {error}") from error
