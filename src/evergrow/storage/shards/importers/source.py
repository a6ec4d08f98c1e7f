"""What importers share: the interface of a source, its result, and periodic commits."""

from __future__ import annotations

import lzma
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from evergrow.foundation.errors import BadImage, ShardError
from evergrow.storage.shards.writer import ShardWriter

# Default names of labels.
LABELS = ("y", "label", "labels")

# Rows and their labels, or None.
Block = tuple[npt.NDArray[Any], list[Any] | None]

# What readers raise for damaged content: files, archives, and each compression method.
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
    """A file of rows."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def blocks(self, n_skipped: int) -> Iterator[Block]:
        """Yield blocks of rows and labels after the first ``n_skipped`` rows.

        Raises a ``ShardError`` for any problem with the file, to tell a damaged file, which is
        rolled back, from a full disk.
        """


@dataclass(frozen=True)
class Keys:
    """The arrays or columns to read; None for the defaults."""

    features: str | None = None
    labels: str | None = None
    labels_file: str | None = None


@contextmanager
def report_damage(name: str, *more: type[Exception]) -> Iterator[None]:
    """Turn errors of reading into a ``ShardError`` that names the content.

    Only reading belongs in the block. ``more`` are exceptions of the reader.
    """
    damaged: tuple[type[Exception], ...] = (*_DAMAGED, *more)
    try:
        yield
    except ShardError:
        raise
    except damaged as error:
        raise ShardError(f"{name} is damaged or cannot be read: {error}") from error


@dataclass(frozen=True)
class Sharded:
    """Result of :func:`shard_table` and :func:`~evergrow.vision.shard_images`.

    Attributes
    ----------
    n_added : int
        Number of rows that were added.
    n_present : int
        Number of rows that were already in the folder.
    problems : tuple of BadImage
        Images that were skipped.
    """

    n_added: int
    n_present: int
    problems: tuple[BadImage, ...] = ()


# A manifest of many shards takes time to write, so it is not written after each shard.
_COMMIT_SECONDS = 2.0


@contextmanager
def periodic_commits(writer: ShardWriter) -> Iterator[Callable[[], None]]:
    """Yield a function that commits finished shards if the last commit was long ago.

    At the end of the block, also after an interruption, all finished shards are committed: a killed
    process loses the last seconds, an interrupted one nothing. A failed commit is not repeated, and
    the original error is raised.
    """
    last = time.monotonic()
    is_broken = False

    def commit() -> None:
        nonlocal is_broken
        # If this fails, renamed files may be unlisted; the next writer cleans up.
        is_broken = True
        writer.commit(all_rows=False)
        is_broken = False

    def commit_if_due() -> None:
        nonlocal last
        if time.monotonic() - last >= _COMMIT_SECONDS:
            commit()
            last = time.monotonic()

    try:
        yield commit_if_due
    except BaseException:
        if not is_broken:
            with suppress(OSError, ValueError):
                commit()
        raise
    commit()
