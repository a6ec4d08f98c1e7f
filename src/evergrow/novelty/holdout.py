"""Examples held out for calibrating: every n-th of each class, a bounded uniform choice of them.

An example's fate is a function of the seed, its class's name and its number within the class, so
the same examples are kept however they were split into calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.errors import ModelFileError
from evergrow.modelfile import check_array
from evergrow.moments import Batch

__all__ = ["HeldOut"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_GONE = -1
_PREFIX = "held_out."


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out examples as raw rows: class means move, so their scores are taken anew.

    Attributes
    ----------
    batch : Batch
        The examples that are kept, those of one class in the order of their priorities.
    priorities : ndarray of shape (n_kept,)
        Random numbers; a class keeps its examples of lowest priority, which is a uniform choice.
    n_seen, n_chosen : ndarray of shape (n_classes,)
        Examples of each class that ever came, and how many of them were held out.
    share : int
        How many a class may keep. It never grows again: what is gone cannot come back, and
        later examples must not count for more than earlier ones.
    seed : int
        Of the priorities.
    """

    batch: Batch
    priorities: Integers
    n_seen: Integers
    n_chosen: Integers
    share: int
    seed: int

    @classmethod
    def none(cls, n_features: int, max_held_out: int, seed: int) -> HeldOut:
        """Nothing yet, of no class."""
        nothing = np.zeros(0, dtype=np.int64)
        batch = Batch.of(np.zeros((0, n_features)), np.zeros(0, dtype=np.int32))
        return cls(batch, nothing, nothing, nothing, max_held_out, seed)

    @property
    def counts(self) -> Integers:
        """Number of examples that are kept, per class."""
        return np.bincount(self.batch.codes, minlength=len(self.n_seen))

    @property
    def represented(self) -> Floats:
        """How many of its class each example stands for: itself and its part of those let go."""
        per_class = self.n_chosen / np.maximum(self.counts, 1)
        return per_class[self.batch.codes]

    def add(
        self, batch: Batch, names: Sequence[Any], *, every: int, max_held_out: int
    ) -> tuple[HeldOut, Mask]:
        """With more examples, and which of them were held out.

        ``names`` are those of all classes, known and new.
        """
        n_new = len(names) - len(self.n_seen)
        n_seen = np.concatenate([self.n_seen, np.zeros(n_new, dtype=np.int64)])
        n_chosen = np.concatenate([self.n_chosen, np.zeros(n_new, dtype=np.int64)])
        chosen = np.zeros(len(batch.rows), dtype=bool)
        priorities = np.zeros(len(batch.rows), dtype=np.int64)
        for column in np.unique(batch.codes).tolist():
            mine = np.flatnonzero(batch.codes == column)
            numbers = n_seen[column] + np.arange(len(mine))
            chosen[mine] = (numbers + 1) % every == 0
            priorities[mine] = _priorities(self.seed, names[column], numbers)
            n_seen[column] += len(mine)
            n_chosen[column] += np.count_nonzero(chosen[mine])
        # One of each class at least, however many classes there are.
        share = min(self.share, max(1, max_held_out // len(names)))
        added = replace(self, n_seen=n_seen, n_chosen=n_chosen, share=share)
        # Most calls of a stream hold nothing out, and the rows are many to copy.
        if chosen.any() or share < self.share:
            added = replace(
                added,
                batch=_joined(self.batch, _taken(batch, chosen)),
                priorities=np.concatenate([self.priorities, priorities[chosen]]),
            )._trimmed()
        return added, chosen

    def find(self, batch: Batch) -> tuple[HeldOut, Mask]:
        """Without these examples, and which of them were kept here."""
        places: dict[tuple[int, float, bytes], list[int]] = {}
        for place, key in enumerate(_keys(self.batch)):
            places.setdefault(key, []).append(place)
        found = np.zeros(len(batch.rows), dtype=bool)
        stays = np.ones(len(self.batch.rows), dtype=bool)
        for i, key in enumerate(_keys(batch)):
            if places.get(key):
                found[i] = True
                stays[places[key].pop()] = False
        gone = np.bincount(batch.codes[found], minlength=len(self.n_seen))
        return replace(self._where(stays), n_chosen=self.n_chosen - gone), found

    def is_whole(self, column: int) -> bool:
        """Whether all examples of a class that were ever held out are still there."""
        return bool(self.counts[column] == self.n_chosen[column])

    def relabel(self, columns: Sequence[int], n_classes: int) -> HeldOut:
        """Class ``k`` becomes class ``columns[k]``, -1 leaves it out; some may become one."""
        place = np.array(columns)
        n_seen, n_chosen = np.zeros((2, n_classes), dtype=np.int64)
        for old, new in ((self.n_seen, n_seen), (self.n_chosen, n_chosen)):
            np.add.at(new, place[place >= 0], old[place >= 0])
        codes = place[self.batch.codes].astype(np.int32)
        moved = replace(
            self, batch=replace(self.batch, codes=codes), n_seen=n_seen, n_chosen=n_chosen
        )
        return moved._where(codes != _GONE)._trimmed()

    def _where(self, stays: Mask) -> HeldOut:
        batch = _taken(self.batch, stays)
        return replace(self, batch=batch, priorities=self.priorities[stays])

    def _trimmed(self) -> HeldOut:
        """Each class's lowest priorities, in their order: the order of arrival leaves no trace."""
        order = np.lexsort((self.priorities, self.batch.codes))
        codes = self.batch.codes[order]
        first = np.searchsorted(codes, codes, side="left")
        order = order[np.arange(len(codes)) - first < self.share]
        batch = _taken(self.batch, order)
        return replace(self, batch=batch, priorities=self.priorities[order])

    def to_tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As named arrays; seed and share belong in the header."""
        return {
            f"{_PREFIX}rows": self.batch.rows,
            f"{_PREFIX}codes": self.batch.codes,
            f"{_PREFIX}weights": self.batch.weights,
            f"{_PREFIX}priorities": self.priorities,
            f"{_PREFIX}n_seen": self.n_seen,
            f"{_PREFIX}n_chosen": self.n_chosen,
        }

    @classmethod
    def from_tensors(
        cls,
        tensors: dict[str, npt.NDArray[Any]],
        n_features: int,
        n_classes: int,
        *,
        share: int,
        seed: int,
    ) -> HeldOut:
        """Rebuild from :meth:`to_tensors`; a ``ModelFileError`` if the arrays do not fit."""

        def read(name: str, dtype: type, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
            return check_array(tensors.get(_PREFIX + name), _PREFIX + name, dtype, shape)

        rows = read("rows", np.float64, (None, n_features))
        n_kept = len(rows)
        codes = read("codes", np.int32, (n_kept,))
        weights = read("weights", np.float64, (n_kept,))
        priorities = read("priorities", np.int64, (n_kept,))
        n_seen = read("n_seen", np.int64, (n_classes,))
        n_chosen = read("n_chosen", np.int64, (n_classes,))
        if n_kept and not (codes.min() >= 0 and codes.max() < n_classes and weights.min() > 0):
            raise ModelFileError("the model file is inconsistent: held out from no class")
        counts = np.bincount(codes, minlength=n_classes)
        if (counts > share).any() or (counts > n_chosen).any() or (n_chosen > n_seen).any():
            raise ModelFileError("the model file is inconsistent: more held out than there were")
        return cls(Batch(rows, codes, weights), priorities, n_seen, n_chosen, share, seed)


def _priorities(seed: int, name: Any, numbers: Integers) -> Integers:
    """Random numbers of 63 bits for some examples of a class, by their numbers."""
    digest = hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
    # Splitmix64, which is made for consecutive numbers.
    bits = np.uint64(int.from_bytes(digest, "little")) + (
        numbers.astype(np.uint64) + np.uint64(1)
    ) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = bits ^ (bits >> np.uint64(31))
    return (bits >> np.uint64(1)).astype(np.int64)


def _taken(batch: Batch, places: npt.NDArray[Any]) -> Batch:
    rows = np.asarray(batch.rows[places], dtype=np.float64)
    return Batch(rows, batch.codes[places], batch.weights[places])


def _joined(first: Batch, second: Batch) -> Batch:
    return Batch(
        np.concatenate([first.rows, second.rows]),
        np.concatenate([first.codes, second.codes]),
        np.concatenate([first.weights, second.weights]),
    )


def _keys(batch: Batch) -> list[tuple[int, float, bytes]]:
    # Adding zero makes one of the two zeros of floating point.
    rows = batch.rows + 0.0
    columns, weights = batch.codes.tolist(), batch.weights.tolist()
    return [(c, w, row.tobytes()) for c, w, row in zip(columns, weights, rows, strict=True)]
