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
from evergrow.foundation.rows import places_by_class, priorities
from evergrow.storage.models.codec import MOST_COUNTED, Array, Fields

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

# Examples that every class may keep, however many classes there are.
_AT_LEAST = 2
# No model can have learnt larger rows, or rows of larger weight.
_LARGEST = 1e140
# The columns of :attr:`Holdout.tallies`.
SEEN, FORGOTTEN, DRAWN, EVICTED = range(4)


@dataclass(frozen=True, eq=False)
class HoldoutDraw:
    """Which examples of one call are held out.

    Attributes
    ----------
    drawn : ndarray of shape (n_samples,), bool
        Whether each example is held out.
    classes : dict of int to (ndarray, ndarray)
        By column, places and priorities of those that may be kept: at most ``share`` of each class.
    tallies : ndarray of shape (n_classes, 4)
        What the call adds to :attr:`Holdout.tallies`.
    share : int
        How many examples each class may keep.
    """

    drawn: Mask
    classes: Mapping[int, tuple[Integers, Integers]]
    tallies: Integers
    share: int

    @cached_property
    def places(self) -> Integers:
        """Ascending places of the examples that may be kept."""
        every = [np.zeros(0, dtype=np.int64), *(places for places, _ in self.classes.values())]
        return np.sort(np.concatenate(every))


@dataclass(frozen=True, eq=False)
class Kept:
    """The kept examples of one class, by priority.

    ``rows`` is an array of arrays, so that an example is added without a copy of the others.
    """

    priorities: Integers
    weights: Floats
    rows: npt.NDArray[np.object_]

    @classmethod
    def of(cls, priorities: Integers, weights: Floats, rows: npt.NDArray[Any]) -> Kept:
        """Copy examples: a view of a row would keep the whole matrix in memory."""
        copies = np.empty(len(rows), dtype=object)
        for place, row in enumerate(rows):
            copies[place] = np.array(row, dtype=np.float64)
        return cls(priorities, weights, copies)

    def __len__(self) -> int:
        return len(self.priorities)

    def at(self, places: npt.NDArray[Any] | slice) -> Kept:
        """Return the examples at some places."""
        return Kept(self.priorities[places], self.weights[places], self.rows[places])

    def joined(self, new: Kept, share: int) -> Kept:
        """Join the examples of both and keep those with the lowest priorities."""
        places = np.searchsorted(self.priorities, new.priorities, side="right")
        return Kept(
            _insert(self.priorities, places, new.priorities)[:share],
            _insert(self.weights, places, new.weights)[:share],
            _insert(self.rows, places, new.rows)[:share],
        )


_NOTHING = Kept.of(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, 0)))


@dataclass(frozen=True, eq=False)
class Holdout:
    """The held-out examples of a model, immutable; copies share the rows.

    Attributes
    ----------
    kept : tuple of Kept
        Per class the kept examples: those with the lowest random priorities, which is a uniform
        sample of all that were held out.
    tallies : ndarray of shape (n_classes, 4)
        Per class how many examples were seen, how many of these were forgotten, how many of the
        others were held out, and 1 if any of these was not kept. Once examples that are not kept
        may have been forgotten, the number held out is an estimate.
    share : int
        How many examples a class may keep. It never grows again, because evicted examples cannot
        come back and later examples must not count more than earlier ones.
    seed : int
        Seed of the priorities.
    """

    kept: tuple[Kept, ...]
    tallies: Integers
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
        """Return the examples as they are in a model file."""
        return {
            "codes": self.batch.codes,
            "priorities": np.concatenate([_NOTHING.priorities, *(k.priorities for k in self.kept)]),
            "weights": self.batch.weights,
            "rows": self.batch.rows if len(self) else np.zeros((0, 0)),
        }

    @classmethod
    def from_stored(cls, fields: dict[str, Any]) -> Holdout:
        """Rebuild from a model file."""
        kept = [_NOTHING] * len(fields["tallies"])
        for column, mine in places_by_class(fields["codes"]):
            ordered = mine[np.argsort(fields["priorities"][mine], kind="stable")]
            parts = (fields[name][ordered] for name in ("priorities", "weights", "rows"))
            kept[column] = Kept.of(*parts)
        return cls(tuple(kept), fields["tallies"], fields["share"], fields["seed"])

    def check_stored(self) -> None:
        """Raise a ``ValueError`` for counts that no examples have."""
        seen, forgotten, drawn, evicted = self.tallies.T
        kept, left = self.counts, seen - forgotten
        if (evicted > 1).any():
            raise InvalidInputError("held-out examples were evicted or not: 0 or 1")
        fits = (kept <= drawn) & (drawn <= left) & (left <= seen) & (kept <= self.share)
        if not fits.all():
            raise InvalidInputError("it holds out more examples than were learnt")
        if ((drawn > kept) & (evicted == 0)).any():
            raise InvalidInputError("held-out examples are missing")

    @classmethod
    def none(cls, max_held_out: int, seed: int) -> Holdout:
        """Return a holdout without examples or classes."""
        return cls((), np.zeros((0, 4), dtype=np.int64), max_held_out, seed)

    def __len__(self) -> int:
        """Count the kept examples."""
        return sum(map(len, self.kept))

    @property
    def n_features(self) -> int | None:
        """Number of features of the kept examples; None if there are none."""
        return self.batch.rows.shape[1] if len(self) else None

    @property
    def counts(self) -> Integers:
        """Number of kept examples per class."""
        return np.array([len(kept) for kept in self.kept], dtype=np.int64)

    @property
    def represented(self) -> Floats:
        """How many held-out examples of its class each kept one represents, itself included."""
        per_class = self.tallies[:, DRAWN] / np.maximum(self.counts, 1)
        return np.asarray(per_class[self.batch.codes])

    @cached_property
    def batch(self) -> Batch:
        """All kept examples, by class and priority."""
        codes = np.repeat(np.arange(len(self.kept), dtype=np.int32), self.counts)
        rows = np.array([row for kept in self.kept for row in kept.rows])
        return Batch(rows, codes, np.concatenate([np.zeros(0), *(k.weights for k in self.kept)]))

    def balanced_places(self, most: int) -> Integers:
        """Return ascending places in :attr:`batch` of up to ``most`` examples.

        Every class has as many as any other, as far as it has them.
        """
        ranks = np.concatenate([np.arange(n) for n in self.counts])
        return np.sort(np.argsort(ranks, kind="stable")[:most])

    def with_classes(self, n_classes: int) -> Holdout:
        """Append classes without examples until there are this many."""
        n_new = n_classes - len(self.kept)
        if not n_new:
            return self
        tallies = np.pad(self.tallies, [(0, n_new), (0, 0)])
        return replace(self, kept=self.kept + (_NOTHING,) * n_new, tallies=tallies)

    def is_complete(self, column: int) -> bool:
        """Whether all held-out examples of a class are kept, except forgotten ones."""
        return not self.tallies[column, EVICTED]

    def draw(
        self,
        codes: Codes,
        names: Sequence[Any],
        *,
        every: int,
        max_held_out: int,
        n_first: int = 0,
    ) -> HoldoutDraw:
        """Decide which new examples to hold out: every ``every``-th of each class.

        ``names`` are those of all classes, known and new. ``max_held_out`` examples are kept of all
        classes together, and the first ``n_first`` of each class in any case.

        >>> codes = np.array([0, 0, 1, 0], dtype=np.int32)
        >>> Holdout.none(9, 0).draw(codes, ["a", "b"], every=2, max_held_out=9).places
        array([1])
        """
        known = self.with_classes(len(names))
        share = min(self.share, max(_AT_LEAST, max_held_out // len(names)))
        drawn, classes = np.zeros(len(codes), dtype=bool), {}
        tallies = np.zeros((len(names), 4), dtype=np.int64)
        for column, mine in places_by_class(codes):
            numbers = known.tallies[column, SEEN] + np.arange(len(mine))
            taken = (numbers + 1) % every == 0
            held, numbers = mine[taken], numbers[taken]
            drawn[held] = True
            tallies[column, SEEN], tallies[column, DRAWN] = len(mine), len(held)
            ranks = priorities(f"{self.seed} {names[column]}", numbers)
            ranks = np.where(numbers < n_first, numbers - n_first, ranks)
            best, own = np.argsort(ranks, kind="stable")[:share], known.kept[column].priorities
            if len(own) >= share:
                best = best[ranks[best] < own[share - 1]]
            classes[column] = held[best], ranks[best]
        return HoldoutDraw(drawn, classes, tallies, share)

    def with_drawn(self, drawn: HoldoutDraw, rows: npt.NDArray[Any], weights: Floats) -> Holdout:
        """Keep the examples that were drawn; ``rows`` and ``weights`` are those at their places."""
        known, places = self.with_classes(len(drawn.tallies))._shared(drawn.share), drawn.places
        kept, tallies = list(known.kept), known.tallies + drawn.tallies
        for column, (mine, ranks) in drawn.classes.items():
            if len(mine):
                at = np.searchsorted(places, mine)
                new = Kept.of(ranks, weights[at], rows[at])
                kept[column] = kept[column].joined(new, drawn.share)
            tallies[column, EVICTED] |= tallies[column, DRAWN] > len(kept[column])
        return replace(known, kept=tuple(kept), tallies=tallies)

    def _shared(self, share: int) -> Holdout:
        """Return a holdout of which no class keeps more than a share."""
        if share >= self.share:
            return self
        kept, tallies = tuple(kept.at(slice(share)) for kept in self.kept), self.tallies.copy()
        tallies[:, EVICTED] |= self.counts > share
        return replace(self, kept=kept, tallies=tallies, share=share)

    def add(
        self, batch: Batch, names: Sequence[Any], *, every: int, max_held_out: int
    ) -> tuple[Holdout, Mask]:
        """Hold out some examples, rows of any type; also return a mask of those held out."""
        drawn = self.draw(batch.codes, names, every=every, max_held_out=max_held_out)
        places = drawn.places
        return self.with_drawn(drawn, batch.rows[places], batch.weights[places]), drawn.drawn

    def remove(self, batch: Batch) -> tuple[Holdout, Mask]:
        """Remove examples; also return a mask of those that were kept here."""
        kept, tallies = list(self.kept), self.tallies.copy()
        found = np.zeros(len(batch.rows), dtype=bool)
        for column, mine in places_by_class(batch.codes):
            held = kept[column]
            places: dict[tuple[bytes, float], list[int]] = {}
            for place in range(len(held) - 1, -1, -1):
                key = _key(held.rows[place], held.weights[place])
                places.setdefault(key, []).append(place)
            gone = list[int]()
            for i in mine.tolist():
                # Equal examples are removed one at a time, the first one first.
                same = places.get(_key(batch.rows[i], batch.weights[i]))
                if same:
                    gone.append(same.pop())
                    found[i] = True
            n_seen, n_forgotten, n_drawn, _ = tallies[column].tolist()
            n_not_kept = n_seen - n_forgotten - len(held)
            # Examples may have been learnt while nothing was held out or counted.
            n_others = min(len(mine) - len(gone), n_not_kept)
            # Which of them had been held out is not known any more: take the expected number.
            n_lost = round(n_others * (n_drawn - len(held)) / n_not_kept) if n_not_kept else 0
            tallies[column, FORGOTTEN] += len(gone) + n_others
            tallies[column, DRAWN] -= len(gone) + n_lost
            kept[column] = held.at(np.delete(np.arange(len(held)), gone))
        return replace(self, kept=tuple(kept), tallies=tallies), found

    def relabel(self, columns: Sequence[int], n_classes: int) -> Holdout:
        """Turn class ``k`` into class ``columns[k]``; -1 leaves it out, equal ones are joined."""
        return replace(self, kept=(), tallies=self.tallies[:0]).merged(self, columns, n_classes)

    def merged(
        self,
        other: Holdout,
        columns: Sequence[int],
        n_classes: int,
        max_held_out: int | None = None,
    ) -> Holdout:
        """Join the examples of both; class ``k`` of the other is ``columns[k]`` here, -1 none.

        A class keeps no more than before, and its part of ``max_held_out``.
        """
        share = min(self.share, other.share)
        if max_held_out is not None:
            share = min(share, max(_AT_LEAST, max_held_out // n_classes))
        mine = self.with_classes(n_classes)._shared(share)
        kept, tallies = list(mine.kept), mine.tallies.copy()
        for column, held, tally in zip(columns, other.kept, other.tallies, strict=True):
            if column != GONE:
                kept[column] = kept[column].joined(held, share)
                tallies[column] += tally
        evicted = (tallies[:, EVICTED] > 0) | (tallies[:, DRAWN] > [len(one) for one in kept])
        tallies[:, EVICTED] = evicted
        return Holdout(tuple(kept), tallies, share, self.seed)


def _insert(values: Any, places: npt.NDArray[np.intp], new: Any) -> Any:
    """Return ``numpy.insert`` of new values, which takes longer for a single one."""
    if len(places) == 1:
        return np.concatenate((values[: places[0]], new, values[places[0] :]))
    return np.insert(values, places, new)


def _key(row: npt.NDArray[Any], weight: float) -> tuple[bytes, float]:
    """Return a key that is the same for equal examples of any type."""
    # Adding zero turns -0.0 into 0.0.
    return (np.asarray(row, dtype=np.float64) + 0.0).tobytes(), float(weight)
