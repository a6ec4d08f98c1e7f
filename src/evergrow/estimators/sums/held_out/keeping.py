"""Examples that are held out and kept: a bounded uniform choice of each class, as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.held_out.choosing import Choice, choose
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.labels import GONE
from evergrow.storage.modelfile import check_array

__all__ = ["HeldOut"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# More examples than this in a file are no numbers of examples.
_MOST = 1 << 62
# Nothing larger is learnt: sums of squares would be no numbers any more.
_LARGEST = 1e140
_PREFIX = "held_out."


@dataclass(frozen=True, eq=False)
class _Example:
    """One held-out example; examples of lower priority stay."""

    priority: int
    row: Floats
    weight: float


@dataclass(frozen=True, eq=False)
class _OfClass:
    """The examples of one class that are kept, by priority, and what is known of the others.

    Attributes
    ----------
    n_seen, n_gone : int
        How many ever came, and how many of them were forgotten.
    n_chosen : int
        How many of those still there were held out. An estimate once some that are not kept may
        have been forgotten.
    let_go : bool
        Whether some that were held out were ever not kept.
    """

    examples: tuple[_Example, ...] = ()
    n_seen: int = 0
    n_gone: int = 0
    n_chosen: int = 0
    let_go: bool = False

    def joined(self, other: _OfClass, share: int) -> _OfClass:
        """With the examples of another, those of the lowest priorities."""
        both = sorted(self.examples + other.examples, key=lambda example: example.priority)[:share]
        n_chosen = self.n_chosen + other.n_chosen
        return _OfClass(
            tuple(both),
            self.n_seen + other.n_seen,
            self.n_gone + other.n_gone,
            n_chosen,
            self.let_go or other.let_go or n_chosen > len(both),
        )

    def without(self, places: set[int], n_others: int) -> _OfClass:
        """Without the examples at some places, and as many others that are not kept."""
        left = tuple(e for place, e in enumerate(self.examples) if place not in places)
        n_hidden = self.n_chosen - len(self.examples)
        n_not_kept = self.n_seen - self.n_gone - len(self.examples)
        # Some may have come while nothing was counted.
        n_others = min(n_others, n_not_kept)
        # Which of them had been held out is not known any more: as many as is to be expected.
        n_lost = round(n_others * n_hidden / n_not_kept) if n_not_kept else 0
        return replace(
            self,
            examples=left,
            n_gone=self.n_gone + len(places) + n_others,
            n_chosen=self.n_chosen - len(places) - n_lost,
        )

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The numbers as a file holds them."""
        return self.n_seen, self.n_gone, self.n_chosen, int(self.let_go)


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
        """Whether all examples of a class that were held out are kept, but for those forgotten."""
        return not self.classes[column].let_go

    def choose(
        self,
        codes: npt.NDArray[np.int32],
        names: Sequence[Any],
        *,
        every: int,
        max_held_out: int,
    ) -> Choice:
        """Count more examples and choose every ``every``-th of each class; nobody looks at rows.

        Parameters
        ----------
        codes : ndarray of shape (n_samples,)
            The column of each one's class.
        names : sequence
            Names of all classes, known and new.
        every, max_held_out : int
            How many are held out, and how many are kept of all classes together.
        """
        # One of each class at least, however many classes there are.
        share = min(self.share, max(1, max_held_out // len(names)))
        n_seen = [held.n_seen for held in self.with_classes(len(names)).classes]
        return choose(codes, names, n_seen, every=every, share=share, seed=self.seed)

    def with_chosen(self, choice: Choice, rows: npt.NDArray[Any], weights: Floats) -> HeldOut:
        """With the examples that were chosen.

        Parameters
        ----------
        choice : Choice
            What these held-out examples chose.
        rows, weights : ndarray of shape (n_places, n_features) and (n_places,)
            The examples at ``choice.places``.
        """
        classes = list(self.with_classes(choice.n_classes).classes)
        if choice.share < self.share:
            classes = [held.joined(_OfClass(), choice.share) for held in classes]
        places = choice.places
        for column, of_class in choice.of_classes.items():
            at = np.searchsorted(places, of_class.places).tolist()
            # Each is a copy: a view would hold the whole matrix.
            new = tuple(
                _Example(rank, np.array(rows[i], dtype=np.float64), float(weights[i]))
                for i, rank in zip(at, of_class.priorities.tolist(), strict=True)
            )
            added = _OfClass(new, of_class.n_seen, 0, of_class.n_chosen)
            classes[column] = classes[column].joined(added, choice.share)
        return HeldOut(tuple(classes), choice.share, self.seed)

    def add(
        self, batch: Batch, names: Sequence[Any], *, every: int, max_held_out: int
    ) -> tuple[HeldOut, Mask]:
        """Hold out some of these examples, rows of any type; and tell which were chosen."""
        choice = self.choose(batch.codes, names, every=every, max_held_out=max_held_out)
        places = choice.places
        added = self.with_chosen(choice, batch.rows[places], batch.weights[places])
        return added, choice.chosen

    def find(self, batch: Batch) -> tuple[HeldOut, Mask]:
        """Without these examples, and which of them were kept here."""
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
                # Equal examples go one by one, the first first.
                same = places.get(_key(batch.rows[i], float(batch.weights[i])))
                if same:
                    gone.add(same.pop())
                    found[i] = True
            classes[column] = held.without(gone, len(mine) - len(gone))
        return replace(self, classes=tuple(classes)), found

    def relabel(self, columns: Sequence[int], n_classes: int) -> HeldOut:
        """Class ``k`` becomes class ``columns[k]``, -1 leaves it out; some may become one."""
        classes = [_OfClass()] * n_classes
        for column, held in zip(columns, self.classes, strict=True):
            if column != GONE:
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
        counts = [held.counts for held in self.classes]
        tensors = {f"{_PREFIX}counts": np.array(counts, dtype=np.int64).reshape(-1, 4)}
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
        counts = read("counts", np.int64, (n_classes, 4))
        examples: list[list[_Example]] = [[] for _ in range(n_classes)]
        if f"{_PREFIX}rows" in tensors:
            rows = read("rows", np.float64, (None, n_features))
            codes = read("codes", np.int32, (len(rows),))
            weights = read("weights", np.float64, (len(rows),))
            priorities = read("priorities", np.int64, (len(rows),)).tolist()
            if len(rows) and not (
                codes.min() >= 0 and codes.max() < n_classes and weights.min() > 0
            ):
                raise ModelFileError("the model file is inconsistent: held out from no class")
            if len(rows) and max(np.abs(rows).max(initial=0.0), weights.max()) > _LARGEST:
                raise ModelFileError("the model file is inconsistent: it holds out what is too big")
            for row, code, weight, priority in zip(
                rows, codes.tolist(), weights.tolist(), priorities, strict=True
            ):
                examples[code].append(_Example(priority, row, weight))
        _check_counts(counts, np.array([len(some) for some in examples]), share)
        classes = (
            _OfClass(tuple(some), seen, gone, chosen, bool(let_go))
            for some, (seen, gone, chosen, let_go) in zip(examples, counts.tolist(), strict=True)
        )
        return cls(tuple(classes), share, seed)


def _check_counts(counts: Integers, kept: Integers, share: int) -> None:
    seen, gone, chosen, let_go = counts.T
    # Differences of what is not negative cannot overflow.
    fits = (counts >= 0).all() and (seen < _MOST).all() and (gone <= seen).all()
    fits = fits and (chosen <= seen - gone).all() and (kept <= chosen).all()
    if not fits or (kept > share).any():
        raise ModelFileError("the model file is inconsistent: more held out than there were")
    if (let_go > 1).any() or ((chosen > kept) & (let_go == 0)).any():
        raise ModelFileError("the model file is inconsistent: held-out examples are missing")


def _key(row: npt.NDArray[Any], weight: float) -> tuple[bytes, float]:
    """The same for equal examples, whatever their type."""
    # There are two zeros; adding one of them makes them the same.
    return (np.asarray(row, dtype=np.float64) + 0.0).tobytes(), weight
