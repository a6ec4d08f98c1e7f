"""Examples held out to choose or calibrate by: every n-th of each class, a bounded uniform choice.

An example's fate is a function of the seed, its class's name and its number within the class, so
the same examples are kept however they were split into calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.batches import Batch
from evergrow.errors import ModelFileError
from evergrow.modelfile import check_array

__all__ = ["HeldOut"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_GONE = -1
_PREFIX = "held_out."


@dataclass(frozen=True, eq=False)
class _Example:
    """One held-out example; examples of lower priority stay."""

    priority: int
    row: Floats
    weight: float

    def equals(self, row: Floats, weight: float) -> bool:
        return self.weight == weight and np.array_equal(self.row, row)


@dataclass(frozen=True, eq=False)
class _OfClass:
    """The examples of one class that are kept, by priority, and how many ever came."""

    examples: tuple[_Example, ...] = ()
    n_seen: int = 0
    n_chosen: int = 0

    def joined(self, other: _OfClass, share: int) -> _OfClass:
        """With the examples of another, those of the lowest priorities."""
        both = sorted(self.examples + other.examples, key=lambda example: example.priority)
        n_seen, n_chosen = self.n_seen + other.n_seen, self.n_chosen + other.n_chosen
        return _OfClass(tuple(both[:share]), n_seen, n_chosen)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out examples as they came in; a value that never changes, whose copies share rows.

    Attributes
    ----------
    classes : tuple
        Per class the examples that are kept: those of the lowest random priorities, which is a
        uniform choice of all that were held out.
    share : int
        How many a class may keep. It never grows again: what is gone cannot come back, and
        later examples must not count for more than earlier ones.
    seed : int
        Of the priorities.
    """

    classes: tuple[_OfClass, ...]
    share: int
    seed: int

    @classmethod
    def none(cls, max_held_out: int, seed: int) -> HeldOut:
        """Nothing yet, of no class."""
        return cls((), max_held_out, seed)

    def __len__(self) -> int:
        """Count the examples that are kept."""
        return sum(len(held.examples) for held in self.classes)

    @property
    def counts(self) -> Integers:
        """Number of examples that are kept, per class."""
        return np.array([len(held.examples) for held in self.classes], dtype=np.int64)

    @property
    def represented(self) -> Floats:
        """How many of its class each example stands for: itself and its part of those let go."""
        per_class = [held.n_chosen / max(1, len(held.examples)) for held in self.classes]
        return np.array(per_class)[self.batch.codes]

    @cached_property
    def batch(self) -> Batch:
        """All examples that are kept, by class and priority."""
        examples = [(c, e) for c, held in enumerate(self.classes) for e in held.examples]
        return Batch(
            np.array([example.row for _, example in examples]),
            np.array([c for c, _ in examples], dtype=np.int32),
            np.array([example.weight for _, example in examples]),
        )

    def with_classes(self, n_classes: int) -> HeldOut:
        """As many classes as this; new ones have no examples."""
        n_new = n_classes - len(self.classes)
        return replace(self, classes=self.classes + (_OfClass(),) * n_new) if n_new else self

    def is_whole(self, column: int) -> bool:
        """Whether all examples of a class that were ever held out are still there."""
        return len(self.classes[column].examples) == self.classes[column].n_chosen

    def add(
        self, batch: Batch, names: Sequence[Any], *, every: int, max_held_out: int
    ) -> tuple[HeldOut, Mask]:
        """Count more examples and hold out every ``every``-th of each class.

        Parameters
        ----------
        batch : Batch
            The examples, rows of any type.
        names : sequence
            Names of all classes, known and new.
        every, max_held_out : int
            How many are held out, and how many are kept of all classes together.

        Returns
        -------
        held_out : HeldOut
            With the examples.
        chosen : ndarray of shape (n_samples,)
            Which of them were held out.
        """
        # One of each class at least, however many classes there are.
        share = min(self.share, max(1, max_held_out // len(names)))
        classes = list(self.with_classes(len(names)).classes)
        if share < self.share:
            classes = [held.joined(_OfClass(), share) for held in classes]
        chosen = np.zeros(len(batch.rows), dtype=bool)
        for column in np.unique(batch.codes).tolist():
            mine = np.flatnonzero(batch.codes == column)
            numbers = classes[column].n_seen + np.arange(len(mine))
            taken = (numbers + 1) % every == 0
            chosen[mine] = taken
            new = _new_examples(
                batch, mine[taken], _priorities(self.seed, names[column], numbers[taken]), share
            )
            added = _OfClass(new, len(mine), int(taken.sum()))
            classes[column] = classes[column].joined(added, share)
        return HeldOut(tuple(classes), share, self.seed), chosen

    def find(self, batch: Batch) -> tuple[HeldOut, Mask]:
        """Without these examples, and which of them were kept here."""
        classes = list(self.classes)
        found = np.zeros(len(batch.rows), dtype=bool)
        for i, column in enumerate(batch.codes.tolist()):
            held = classes[column]
            row, weight = np.asarray(batch.rows[i], dtype=np.float64), float(batch.weights[i])
            place = next((p for p, e in enumerate(held.examples) if e.equals(row, weight)), None)
            if place is not None:
                found[i] = True
                examples = held.examples[:place] + held.examples[place + 1 :]
                classes[column] = replace(held, examples=examples, n_chosen=held.n_chosen - 1)
        return replace(self, classes=tuple(classes)), found

    def relabel(self, columns: Sequence[int], n_classes: int) -> HeldOut:
        """Class ``k`` becomes class ``columns[k]``, -1 leaves it out; some may become one."""
        classes = [_OfClass()] * n_classes
        for column, held in zip(columns, self.classes, strict=True):
            if column != _GONE:
                classes[column] = classes[column].joined(held, self.share)
        return replace(self, classes=tuple(classes))

    def merged(
        self, other: HeldOut, columns: Sequence[int], n_classes: int, max_held_out: int
    ) -> HeldOut:
        """The examples of both; class ``k`` of the other is ``columns[k]`` here."""
        share = min(self.share, other.share, max(1, max_held_out // n_classes))
        mine = self.with_classes(n_classes).classes
        theirs = other.relabel(columns, n_classes).classes
        both = (a.joined(b, share) for a, b in zip(mine, theirs, strict=True))
        return HeldOut(tuple(both), share, self.seed)

    def to_tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As named arrays; seed and share belong in the header."""
        counts = [(held.n_seen, held.n_chosen) for held in self.classes]
        tensors = {f"{_PREFIX}counts": np.array(counts, dtype=np.int64).reshape(-1, 2)}
        if not len(self):
            return tensors
        priorities = [e.priority for held in self.classes for e in held.examples]
        return tensors | {
            f"{_PREFIX}rows": self.batch.rows,
            f"{_PREFIX}codes": self.batch.codes,
            f"{_PREFIX}weights": self.batch.weights,
            f"{_PREFIX}priorities": np.array(priorities, dtype=np.int64),
        }

    @classmethod
    def from_tensors(
        cls, tensors: dict[str, npt.NDArray[Any]], sizes: tuple[int, int], *, share: int, seed: int
    ) -> HeldOut:
        """Rebuild from :meth:`to_tensors`, for (n_features, n_classes).

        Raises a ``ModelFileError`` if the arrays do not fit.
        """

        def read(name: str, dtype: type, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
            return check_array(tensors.get(_PREFIX + name), _PREFIX + name, dtype, shape)

        n_features, n_classes = sizes
        counts = read("counts", np.int64, (n_classes, 2))
        if not (counts[:, 0] >= counts[:, 1]).all() or (counts < 0).any():
            raise ModelFileError("the model file is inconsistent: more held out than there were")
        if f"{_PREFIX}rows" not in tensors:
            return cls(tuple(_OfClass((), *pair) for pair in counts.tolist()), share, seed)
        rows = read("rows", np.float64, (None, n_features))
        codes = read("codes", np.int32, (len(rows),))
        weights = read("weights", np.float64, (len(rows),))
        priorities = read("priorities", np.int64, (len(rows),)).tolist()
        if len(rows) and not (codes.min() >= 0 and codes.max() < n_classes and weights.min() > 0):
            raise ModelFileError("the model file is inconsistent: held out from no class")
        kept = np.bincount(codes, minlength=n_classes)
        if (kept > share).any() or (kept > counts[:, 1]).any():
            raise ModelFileError("the model file is inconsistent: more held out than there were")
        examples: list[list[_Example]] = [[] for _ in range(n_classes)]
        for row, code, weight, priority in zip(
            rows, codes.tolist(), weights.tolist(), priorities, strict=True
        ):
            examples[code].append(_Example(priority, row, weight))
        joined = zip(examples, counts.tolist(), strict=True)
        return cls(tuple(_OfClass(tuple(some), *pair) for some, pair in joined), share, seed)


def _new_examples(
    batch: Batch, places: npt.NDArray[Any], priorities: Integers, share: int
) -> tuple[_Example, ...]:
    # More than the share cannot stay, and each is a copy: a view would hold the whole matrix.
    best = np.argsort(priorities, kind="stable")[:share]
    rows = [np.array(batch.rows[i], dtype=np.float64) for i in places[best].tolist()]
    weights, ranks = batch.weights[places[best]].tolist(), priorities[best].tolist()
    return tuple(_Example(*parts) for parts in zip(ranks, rows, weights, strict=True))


def _priorities(seed: int, name: Any, numbers: Integers) -> Integers:
    """Random numbers of 63 bits for some examples of a class, by their numbers."""
    digest = hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
    # SplitMix64, which is made for consecutive numbers.
    bits = np.uint64(int.from_bytes(digest, "little")) + (
        numbers.astype(np.uint64) + np.uint64(1)
    ) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = bits ^ (bits >> np.uint64(31))
    return (bits >> np.uint64(1)).astype(np.int64)
