"""What came of putting a source into shards."""

from __future__ import annotations

from dataclasses import dataclass

from evergrow.foundation.errors import BadImage

__all__ = ["Sharded"]


@dataclass(frozen=True)
class Sharded:
    """How many rows a source gave.

    Attributes
    ----------
    n_added : int
        Rows that are in the folder now and were not before.
    n_present : int
        Rows of the source that were in the folder already.
    problems : tuple of BadImage
        Images that were left out.
    """

    n_added: int
    n_present: int
    problems: tuple[BadImage, ...] = ()
