"""When each tree was last taught and when each class came: which trees know which classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.foundation.labels import GONE
from evergrow.storage.models.codec import MOST_COUNTED, Array, Fields

Updates: TypeAlias = npt.NDArray[np.int64]

# Instead of the number of an update: no sample of the class came yet.
NEVER = -1
# Weight of the vote of a tree for a class that came after the tree was grown. Its splits were made
# without the class, so that it knows the class only by the leaves that its samples happened to
# reach (docs/growing_tradeoffs.md).
OLDER_WEIGHT = 0.03
# In these leaves the class is one among others, so that such a tree votes for it too seldom. Its
# votes are multiplied by this number; a class that one tree knows would otherwise be found only
# where that tree happens to be right.
OLDER_GAIN = 5.0


@dataclass(frozen=True, eq=False)
class Ages:
    """Ages of the trees and classes of a forest, in updates.

    Attributes
    ----------
    taught : ndarray of shape (n_trees,)
        Number of the update that last taught each tree all classes so far: it grew the tree from
        scratch, or found splits again (RUST and RTST). 0 is the first fit.
    came : ndarray of shape (n_classes,)
        Number of the update with the first sample of each class; ``NEVER`` before that.
    """

    taught: Updates
    came: Updates

    _stored: ClassVar[Fields] = {
        "taught": Array(np.int64, ("trees",), NEVER, MOST_COUNTED),
        "came": Array(np.int64, ("classes",), NEVER, MOST_COUNTED),
    }

    @classmethod
    def of_first(cls, n_trees: int, n_classes: int, codes: npt.NDArray[np.int32]) -> Ages:
        """Ages after a fit with samples of these classes."""
        nothing = cls(np.zeros(n_trees, dtype=np.int64), np.zeros(0, dtype=np.int64))
        return nothing.with_samples(codes, n_classes, 0)

    @property
    def n_seen_classes(self) -> int:
        """Number of classes that had a sample so far."""
        return int((self.came != NEVER).sum())

    def with_samples(self, codes: npt.NDArray[np.int32], n_classes: int, update: int) -> Ages:
        """Ages after an update with samples of these classes."""
        came = np.full(n_classes, NEVER, dtype=np.int64)
        came[: len(self.came)] = self.came
        present = np.unique(codes)
        came[present[came[present] == NEVER]] = update
        return replace(self, came=came)

    def without_classes(self, codes: npt.NDArray[np.int32]) -> Ages:
        """Ages after all samples of these classes were forgotten."""
        came = self.came.copy()
        came[codes] = NEVER
        return replace(self, came=came)

    def with_taught(self, first: int, n_taught: int, update: int) -> Ages:
        """Ages after ``n_taught`` trees from ``first`` on, in turn, were taught all classes."""
        taught = self.taught.copy()
        taught[(first + np.arange(n_taught)) % len(taught)] = update
        return replace(self, taught=taught)

    def with_columns(self, columns: list[int], n_classes: int) -> Ages:
        """The same with classes renumbered: class ``c`` becomes ``columns[c]``.

        A merged class is as old as the oldest of its parts.
        """
        came = np.full(n_classes, NEVER, dtype=np.int64)
        for old, new in zip(self.came.tolist(), columns, strict=True):
            if new != GONE and old != NEVER:
                came[new] = old if came[new] == NEVER else min(old, came[new])
        return replace(self, came=came)

    @cached_property
    def votes(self) -> _core.VoteWeights | None:
        """How much the votes of trees count; None if all count alike."""
        newest = self.taught.max()
        is_mixed = (self.came > self.taught.min()) & (self.came <= newest)
        if not is_mixed.any():
            return None
        taught, came = self.taught.tolist(), self.came.tolist()
        return _core.VoteWeights(taught, came, OLDER_WEIGHT, OLDER_GAIN)
