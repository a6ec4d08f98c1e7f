"""Held-out examples: every n-th example of each class, of which a bounded number is kept.

Whether an example is held out and kept depends only on the seed, the name of its class and its
number within the class [Camoriano2017 Sec. VI-C]. So the same examples are kept however they are
split into calls or into parts of one call, and the decision needs no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.moments import Batch
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import GONE
from evergrow.foundation.params import Integer
from evergrow.foundation.rows import priorities
from evergrow.storage.models.codec import MOST_COUNTED, Array, Fields

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Examples that every class may keep, however many classes there are.
_AT_LEAST = 2
# No model can have learnt larger rows, or rows of larger weight.
_LARGEST = 1e140


@dataclass(frozen=True, eq=False)
class ClassDraw:
    """The drawn examples of one class that may be kept, by priority, and how many there were."""

    places: npt.NDArray[np.intp]
    priorities: Integers
    n_seen: int
    n_drawn: int


@dataclass(frozen=True, eq=False)
class HoldoutDraw:
    """Which examples of one call are held out.

    Attributes
    ----------
    drawn : ndarray of shape (n_samples,), bool
        Whether each example is held out.
    classes : dict of int to ClassDraw
        By column, the held-out examples that may be kept: at most ``share`` of each class.
    n_classes, share : int
        Number of classes, and how many examples each may keep.
    """

    drawn: Mask
    classes: Mapping[int, ClassDraw]
    n_classes: int
    share: int

    @cached_property
    def places(self) -> Integers:
        """Ascending places of the examples that may be kept."""
        every = [np.zeros(0, dtype=np.int64), *(one.places for one in self.classes.values())]
        return np.sort(np.concatenate(every))


def draw(
    codes: npt.NDArray[np.int32],
    names: Sequence[Any],
    n_seen: Sequence[int],
    *,
    every: int,
    share: int,
    seed: int,
    n_first: int = 0,
) -> HoldoutDraw:
    """Hold out every ``every``-th example of each class, and keep at most ``share`` of them.

    ``n_seen`` is the number of earlier examples of each class. The first ``n_first`` examples of a
    class come before all others.

    >>> drawn = draw(np.array([0, 0, 1, 0]), ["a", "b"], [0, 1], every=2, share=9, seed=0)
    >>> drawn.places
    array([1, 2])
    """
    drawn = np.zeros(len(codes), dtype=bool)
    classes: dict[int, ClassDraw] = {}
    # Grouped by one sort: a search per class would be slow for many classes.
    order = np.argsort(codes, kind="stable")
    columns, firsts = np.unique(codes[order], return_index=True)
    for column, mine in zip(columns.tolist(), np.split(order, firsts[1:]), strict=True):
        numbers = n_seen[column] + np.arange(len(mine))
        taken = (numbers + 1) % every == 0
        drawn[mine] = taken
        ranks = priorities(f"{seed} {names[column]}", numbers[taken])
        ranks = np.where(numbers[taken] < n_first, numbers[taken] - n_first, ranks)
        best = np.argsort(ranks, kind="stable")[:share]
        classes[column] = ClassDraw(mine[taken][best], ranks[best], len(mine), int(taken.sum()))
    return HoldoutDraw(drawn, classes, len(names), share)


@dataclass(frozen=True, eq=False)
class HeldExample:
    """One held-out example; examples with the lowest priorities are kept."""

    priority: int
    row: Floats
    weight: float


@dataclass(frozen=True, eq=False)
class ClassHoldout:
    """The kept examples of one class, by priority, and counts of all examples of the class.

    Attributes
    ----------
    n_seen, n_forgotten : int
        How many examples were seen, and how many of them were forgotten.
    n_drawn : int
        How many of those not forgotten were held out. An estimate once examples that are not kept
        may have been forgotten.
    has_evicted : bool
        Whether any held-out example was ever not kept.
    """

    examples: tuple[HeldExample, ...] = ()
    n_seen: int = 0
    n_forgotten: int = 0
    n_drawn: int = 0
    has_evicted: bool = False

    def joined(self, other: ClassHoldout, share: int) -> ClassHoldout:
        """Join the examples of both and keep those with the lowest priorities."""
        both = sorted(self.examples + other.examples, key=lambda example: example.priority)[:share]
        n_drawn = self.n_drawn + other.n_drawn
        return ClassHoldout(
            tuple(both),
            self.n_seen + other.n_seen,
            self.n_forgotten + other.n_forgotten,
            n_drawn,
            self.has_evicted or other.has_evicted or n_drawn > len(both),
        )

    def without(self, places: set[int], n_others: int) -> ClassHoldout:
        """Remove the kept examples at some places, and a number of others that are not kept."""
        left = tuple(e for place, e in enumerate(self.examples) if place not in places)
        n_evicted = self.n_drawn - len(self.examples)
        n_not_kept = self.n_seen - self.n_forgotten - len(self.examples)
        # Examples may have been learnt while nothing was held out or counted.
        n_others = min(n_others, n_not_kept)
        # Which of them had been held out is not known any more: take the expected number.
        n_lost = round(n_others * n_evicted / n_not_kept) if n_not_kept else 0
        return replace(
            self,
            examples=left,
            n_forgotten=self.n_forgotten + len(places) + n_others,
            n_drawn=self.n_drawn - len(places) - n_lost,
        )


@dataclass(frozen=True, eq=False)
class Holdout:
    """The held-out examples of a model, immutable; copies share the rows.

    Attributes
    ----------
    classes : tuple of ClassHoldout
        Per class the kept examples: those with the lowest random priorities, which is a uniform
        sample of all that were held out.
    share : int
        How many examples a class may keep. It never grows again, because evicted examples cannot
        come back and later examples must not count more than earlier ones.
    seed : int
        Seed of the priorities.
    """

    classes: tuple[ClassHoldout, ...]
    share: int
    seed: int

    _stored: ClassVar[Fields] = {
        "share": [Integer(1)],
        "seed": [Integer(0, 2**63 - 1)],
        "tallies": Array(np.int64, ("classes", 4), 0, total=MOST_COUNTED),
        "codes": Array(np.int32, ("held",), 0, "classes"),
        "priorities": Array(np.int64, ("held",)),
        "weights": Array(np.float64, ("held",), 0.0, _LARGEST, open_low=True),
        "rows": Array(np.float64, ("held", "inputs"), -_LARGEST, _LARGEST),
    }

    def stored_fields(self) -> dict[str, Any]:
        """Return the examples and counts as they are in a model file."""
        tallies = [(c.n_seen, c.n_forgotten, c.n_drawn, c.has_evicted) for c in self.classes]
        priorities = [e.priority for held in self.classes for e in held.examples]
        return {
            "tallies": np.array(tallies, dtype=np.int64).reshape(-1, 4),
            "codes": self.batch.codes,
            "priorities": np.array(priorities, dtype=np.int64),
            "weights": self.batch.weights,
            "rows": self.batch.rows if len(self) else np.zeros((0, 0)),
        }

    @classmethod
    def from_stored(cls, fields: dict[str, Any]) -> Holdout:
        """Rebuild from a model file."""
        tallies, codes = fields["tallies"], fields["codes"].tolist()
        if (tallies[:, 3] > 1).any():
            raise InvalidInputError("held-out examples were evicted or not: 0 or 1")
        examples: list[list[HeldExample]] = [[] for _ in tallies]
        numbers = (fields[name].tolist() for name in ("priorities", "weights"))
        for code, row, priority, weight in zip(codes, fields["rows"], *numbers, strict=True):
            examples[code].append(HeldExample(priority, row, weight))
        classes = (
            ClassHoldout(tuple(some), seen, forgotten, drawn, bool(evicted))
            for some, (seen, forgotten, drawn, evicted) in zip(
                examples, tallies.tolist(), strict=True
            )
        )
        return cls(tuple(classes), fields["share"], fields["seed"])

    def check_stored(self) -> None:
        """Raise a ``ValueError`` for counts that no examples have."""
        for held in self.classes:
            kept, left = len(held.examples), held.n_seen - held.n_forgotten
            if not kept <= held.n_drawn <= left <= held.n_seen or kept > self.share:
                raise InvalidInputError("it holds out more examples than were learnt")
            if held.n_drawn > kept and not held.has_evicted:
                raise InvalidInputError("held-out examples are missing")

    @classmethod
    def none(cls, max_held_out: int, seed: int) -> Holdout:
        """Return a holdout without examples or classes."""
        return cls((), max_held_out, seed)

    def __len__(self) -> int:
        """Count the kept examples."""
        return sum(len(held.examples) for held in self.classes)

    @property
    def n_features(self) -> int | None:
        """Number of features of the kept examples; None if there are none."""
        return self.batch.rows.shape[1] if len(self) else None

    @property
    def counts(self) -> Integers:
        """Number of kept examples per class."""
        return np.array([len(held.examples) for held in self.classes], dtype=np.int64)

    @property
    def represented(self) -> Floats:
        """How many held-out examples of its class each kept one represents, itself included."""
        per_class = [held.n_drawn / max(1, len(held.examples)) for held in self.classes]
        return np.array(per_class)[self.batch.codes]

    @cached_property
    def batch(self) -> Batch:
        """All kept examples, by class and priority."""
        examples = [(c, e) for c, held in enumerate(self.classes) for e in held.examples]
        return Batch(
            np.array([example.row for _, example in examples]),
            np.array([c for c, _ in examples], dtype=np.int32),
            np.array([example.weight for _, example in examples]),
        )

    def balanced_places(self, most: int) -> Integers:
        """Return ascending places in :attr:`batch` of up to ``most`` examples.

        Every class has as many as any other, as far as it has them.
        """
        ranks = np.concatenate([np.arange(n) for n in self.counts])
        return np.sort(np.argsort(ranks, kind="stable")[:most])

    def with_classes(self, n_classes: int) -> Holdout:
        """Append classes without examples until there are this many."""
        n_new = n_classes - len(self.classes)
        return replace(self, classes=self.classes + (ClassHoldout(),) * n_new) if n_new else self

    def is_complete(self, column: int) -> bool:
        """Whether all held-out examples of a class are kept, except forgotten ones."""
        return not self.classes[column].has_evicted

    def draw(
        self,
        codes: npt.NDArray[np.int32],
        names: Sequence[Any],
        *,
        every: int,
        max_held_out: int,
        n_first: int = 0,
    ) -> HoldoutDraw:
        """Decide which new examples to hold out: every ``every``-th of each class.

        ``names`` are those of all classes, known and new. ``max_held_out`` examples are kept of all
        classes together, and the first ``n_first`` of each class in any case.
        """
        share = min(self.share, max(_AT_LEAST, max_held_out // len(names)))
        n_seen = [held.n_seen for held in self.with_classes(len(names)).classes]
        return draw(codes, names, n_seen, every=every, share=share, seed=self.seed, n_first=n_first)

    def with_drawn(self, drawn: HoldoutDraw, rows: npt.NDArray[Any], weights: Floats) -> Holdout:
        """Keep the examples that were drawn; ``rows`` and ``weights`` are those at their places."""
        classes = list(self.with_classes(drawn.n_classes).classes)
        if drawn.share < self.share:
            classes = [held.joined(ClassHoldout(), drawn.share) for held in classes]
        places = drawn.places
        for column, of_class in drawn.classes.items():
            at = np.searchsorted(places, of_class.places).tolist()
            # Each row is copied: a view would keep the whole matrix in memory.
            new = tuple(
                HeldExample(rank, np.array(rows[i], dtype=np.float64), float(weights[i]))
                for i, rank in zip(at, of_class.priorities.tolist(), strict=True)
            )
            added = ClassHoldout(new, of_class.n_seen, 0, of_class.n_drawn)
            classes[column] = classes[column].joined(added, drawn.share)
        return Holdout(tuple(classes), drawn.share, self.seed)

    def add(
        self, batch: Batch, names: Sequence[Any], *, every: int, max_held_out: int
    ) -> tuple[Holdout, Mask]:
        """Hold out some examples, rows of any type; also return a mask of those held out."""
        drawn = self.draw(batch.codes, names, every=every, max_held_out=max_held_out)
        places = drawn.places
        return self.with_drawn(drawn, batch.rows[places], batch.weights[places]), drawn.drawn

    def remove(self, batch: Batch) -> tuple[Holdout, Mask]:
        """Remove examples; also return a mask of those that were kept here."""
        classes = list(self.classes)
        found = np.zeros(len(batch.rows), dtype=bool)
        for column in np.unique(batch.codes).tolist():
            held = classes[column]
            places: dict[tuple[bytes, float], list[int]] = {}
            for place in range(len(held.examples) - 1, -1, -1):
                example = held.examples[place]
                places.setdefault(_key(example.row, example.weight), []).append(place)
            mine = np.flatnonzero(batch.codes == column)
            gone = set[int]()
            for i in mine.tolist():
                # Equal examples are removed one at a time, the first one first.
                same = places.get(_key(batch.rows[i], float(batch.weights[i])))
                if same:
                    gone.add(same.pop())
                    found[i] = True
            classes[column] = held.without(gone, len(mine) - len(gone))
        return replace(self, classes=tuple(classes)), found

    def relabel(self, columns: Sequence[int], n_classes: int) -> Holdout:
        """Turn class ``k`` into class ``columns[k]``; -1 leaves it out, equal ones are joined."""
        classes = [ClassHoldout()] * n_classes
        for column, held in zip(columns, self.classes, strict=True):
            if column != GONE:
                classes[column] = classes[column].joined(held, self.share)
        return replace(self, classes=tuple(classes))

    def merged(
        self, other: Holdout, columns: Sequence[int], n_classes: int, max_held_out: int
    ) -> Holdout:
        """Join the examples of both; class ``k`` of the other is ``columns[k]`` here."""
        share = min(self.share, other.share, max(_AT_LEAST, max_held_out // n_classes))
        mine = self.with_classes(n_classes).classes
        theirs = other.relabel(columns, n_classes).classes
        both = (a.joined(b, share) for a, b in zip(mine, theirs, strict=True))
        return Holdout(tuple(both), share, self.seed)


def _key(row: npt.NDArray[Any], weight: float) -> tuple[bytes, float]:
    """Return a key that is the same for equal examples of any type."""
    # Adding zero turns -0.0 into 0.0.
    return (np.asarray(row, dtype=np.float64) + 0.0).tobytes(), weight
