"""Sums over weighted examples: all that least squares and class means keep of their data.

Sums are exact in both directions: they do not depend on the order or the split of the examples
into calls, examples can be taken out again, and two machines' sums add up to one.

A value never changes. What single examples add to the large Gram matrix waits in a short list,
so that one example costs its own size and not that of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.batches import (
    Batch,
    add_class_products,
    add_products,
    copies,
    joined_batches,
)
from evergrow.foundation.labels import GONE

__all__ = ["FEW", "WAITING", "ForgetError", "Moments"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]

# Single examples wait until there are this many; half of them then join the Gram matrix in one
# matrix product. The other half stays at hand for whoever follows example by example.
WAITING = 256
# Batches of this many rows join at once.
FEW = 32

# What forgotten examples may leave behind, relative to the sums they were part of last, and to the
# largest sums there ever were.
_ROUNDING = 1e-9
_RESIDUE = 1e-14


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over examples ``x`` of class ``c`` with weight ``w``.

    Attributes
    ----------
    class_sums : tuple of ndarray of shape (n_features,)
        ``sum w x`` per class: the columns of ``b = X'Y`` of least squares.
    class_weights, class_examples : ndarray of shape (n_classes,)
        ``sum w`` and the number of examples per class.
    class_squares : ndarray of shape (n_classes,)
        ``sum w x.x`` per class.
    settled : ndarray of shape (n_features, n_features) or None
        Upper triangle of ``sum w x x'`` over all but the waiting examples; None if not wanted.
    class_settled : tuple of ndarray or None
        The same per class; None if not wanted.
    peak : float
        The largest that ``sum w x.x`` over all examples ever was: rounding is relative to it.
    waiting : tuple of Batch
        The latest examples, not yet in ``settled``.
    token : object
        Names the sums without the waiting examples.
    """

    class_sums: tuple[Floats, ...]
    class_weights: Floats
    class_examples: npt.NDArray[np.int64]
    class_squares: Floats
    settled: Floats | None
    class_settled: tuple[Floats, ...] | None
    peak: float = 0.0
    waiting: tuple[Batch, ...] = ()
    token: object = field(default_factory=object)

    @classmethod
    def none(
        cls, n_features: int, n_classes: int, *, gram: bool, per_class: bool = False
    ) -> Moments:
        """No examples yet."""
        square = (n_features, n_features)
        return cls(
            tuple(np.zeros(n_features) for _ in range(n_classes)),
            np.zeros(n_classes),
            np.zeros(n_classes, dtype=np.int64),
            np.zeros(n_classes),
            np.zeros(square) if gram else None,
            tuple(np.zeros(square) for _ in range(n_classes)) if per_class else None,
        )

    @property
    def n_classes(self) -> int:
        """Number of classes, with or without examples."""
        return len(self.class_weights)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.class_sums[0])

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return int(self.class_examples.sum())

    @property
    def weight(self) -> float:
        """Sum of the weights of all examples."""
        return float(self.class_weights.sum())

    @property
    def squares(self) -> float:
        """``sum w x.x`` over all examples, the trace of the Gram matrix."""
        return float(self.class_squares.sum())

    @cached_property
    def sums(self) -> Floats:
        """The class sums as one matrix of shape (n_classes, n_features)."""
        return np.array(self.class_sums)

    @cached_property
    def means(self) -> Floats:
        """Class means, Eq. (1) of Ristin 2014; zero for a class without examples."""
        weights = self.class_weights[:, None]
        return np.divide(self.sums, weights, out=np.zeros_like(self.sums), where=weights > 0)

    @cached_property
    def gram(self) -> Floats:
        """Upper triangle of ``sum w x x'`` over all examples."""
        if self.settled is None:
            raise ValueError("these sums have no Gram matrix")
        if not self.waiting:
            return self.settled
        gram = self.settled.copy()
        for batch in self.waiting:
            add_products(gram, batch)
        return gram

    def check_finite(self) -> None:
        """Raise a ``ValueError`` if the sums are too large, or too unequal, to compute with."""
        known = self.class_weights > 0
        with np.errstate(over="ignore"):
            shares = self.weight / self.class_weights[known]
        if not (np.isfinite(self.class_squares).all() and np.isfinite(shares).all()):
            raise ValueError(
                "the weighted examples are too large, or their weights too unequal, to add up"
            )

    @property
    def diagonal(self) -> Floats:
        """Diagonal of the Gram matrix."""
        if self.settled is None:
            raise ValueError("these sums have no Gram matrix")
        diagonal: Floats = np.diagonal(self.settled).copy()
        for batch in self.waiting:
            diagonal += batch.sign * np.einsum("ij,ij->j", batch.scaled, batch.scaled)
        return diagonal

    def follow(self, token: object) -> tuple[Batch, ...] | None:
        """What was added since the sums that the token names; None if that is too long ago."""
        tokens = [self.token, *(batch.token for batch in self.waiting)]
        # From the end: it is nearly always the last one or the one before.
        for place in range(len(tokens) - 1, -1, -1):
            if tokens[place] is token:
                return self.waiting[place:]
        return None

    @property
    def latest(self) -> object:
        """Names these sums."""
        return self.waiting[-1].token if self.waiting else self.token

    def with_classes(self, n_classes: int) -> Moments:
        """As many classes as this; new ones have no examples."""
        n_new = n_classes - self.n_classes
        if not n_new:
            return self
        grown = Moments.none(
            self.n_features, n_new, gram=False, per_class=self.class_settled is not None
        )
        per_class = None if self.class_settled is None else grown.class_settled
        return replace(
            self,
            class_sums=self.class_sums + grown.class_sums,
            class_weights=np.concatenate([self.class_weights, grown.class_weights]),
            class_examples=np.concatenate([self.class_examples, grown.class_examples]),
            class_squares=np.concatenate([self.class_squares, grown.class_squares]),
            class_settled=None if per_class is None else (self.class_settled or ()) + per_class,
        )

    def add(self, batch: Batch) -> Moments:
        """With more examples; their classes must be known."""
        return self._add_few(batch) if len(batch.rows) < FEW else self.add_all([batch])

    def subtract(self, batches: Iterable[Batch]) -> Moments:
        """Without these examples; a ``ForgetError`` if they cannot have been learnt."""
        left, columns = self, set[int]()
        for batch in batches:
            left._check_learnt(batch)
            left = left.add(Batch(batch.rows, batch.codes, batch.weights, sign=-1))
            columns.update(np.unique(batch.codes).tolist())
        left._check_plausible(self, sorted(columns))
        return left._without_residue()

    def _add_few(self, batch: Batch) -> Moments:
        added = self._with_sums([batch])
        if self.settled is None:
            return added
        waiting = (*self.waiting, batch)
        if sum(len(few.rows) for few in waiting) <= WAITING:
            return replace(added, waiting=waiting)
        n_old = max(1, len(waiting) // 2)
        old, recent = waiting[:n_old], waiting[n_old:]
        settled, class_settled = added._settle(old)
        return replace(
            added,
            settled=settled,
            class_settled=class_settled,
            waiting=recent,
            token=old[-1].token,
        )

    def add_all(self, batches: Iterable[Batch]) -> Moments:
        """With many more examples, a batch at a time."""
        # One new Gram matrix for all of them, nobody else's until it is whole.
        gram, class_grams = self._settle(self.waiting)
        if gram is self.settled:
            gram = None if gram is None else gram.copy()
        class_grams = copies(class_grams, range(self.n_classes))
        added = replace(self, waiting=(), token=object())
        for batch in batches:
            added = added._with_sums([batch])
            if gram is not None:
                add_products(gram, batch)
            if class_grams is not None:
                add_class_products(class_grams, batch)
        return replace(added, settled=gram, class_settled=class_grams)

    def moved(self, batch: Batch, codes: Codes) -> Moments:
        """With these examples in other classes; their products stay as they are."""
        self._check_learnt(batch)
        to = Batch(batch.rows, codes, batch.weights)
        gone = Batch(batch.rows, batch.codes, batch.weights, sign=-1)
        changed = self._renamed()._with_sums([gone, to])
        changed._check_plausible(self, sorted(np.unique(batch.codes).tolist()))
        if changed.class_settled is not None:
            grams = copies(changed.class_settled, {*batch.codes.tolist(), *codes.tolist()}) or ()
            add_class_products(grams, gone)
            add_class_products(grams, to)
            changed = replace(changed, class_settled=grams)
        return replace(changed, peak=self.peak)._without_residue()

    def _renamed(self) -> Moments:
        """The same sums under names that nobody knows: whoever follows them has to begin anew."""
        if self.class_settled is None:
            waiting = tuple(replace(batch, token=object()) for batch in self.waiting)
            return replace(self, waiting=waiting, token=object())
        # Waiting examples would join the matrices of the classes they were in.
        gram, class_grams = self._settle(self.waiting)
        return replace(self, settled=gram, class_settled=class_grams, waiting=(), token=object())

    def without_empty(self) -> Moments:
        """The same sums without the columns of classes that have no examples."""
        present = self.class_examples > 0
        if present.all():
            return self
        columns = np.where(present, np.cumsum(present) - 1, GONE)
        return self.relabel(columns.tolist(), int(present.sum()))

    def settled_grams(self) -> tuple[Floats | None, tuple[Floats, ...] | None]:
        """Gram matrix over all examples, and per class; None where they are not kept."""
        return self._settle(self.waiting)

    def _settle(self, batches: Sequence[Batch]) -> tuple[Floats | None, tuple[Floats, ...] | None]:
        """Gram matrices with waiting examples in them; new ones if there are any."""
        if self.settled is None or not batches:
            return self.settled, self.class_settled
        few = joined_batches(batches)
        gram = self.settled.copy()
        columns = {c for batch in few for c in np.unique(batch.codes).tolist()}
        class_grams = copies(self.class_settled, columns)
        for batch in few:
            add_products(gram, batch)
            if class_grams is not None:
                add_class_products(class_grams, batch)
        return gram, class_grams

    def _with_sums(self, batches: Iterable[Batch]) -> Moments:
        """With the examples in every sum but the Gram matrix."""
        sums = list(self.class_sums)
        weights, examples = self.class_weights.copy(), self.class_examples.copy()
        squares = self.class_squares.copy()
        for batch in batches:
            norms = np.einsum("ij,ij->i", batch.scaled, batch.scaled)
            for column, mine in batch.places_by_class():
                sums[column] = sums[column] + batch.sign * (batch.weights[mine] @ batch.rows[mine])
                weights[column] += batch.sign * batch.weights[mine].sum()
                examples[column] += batch.sign * len(mine)
                squares[column] += batch.sign * norms[mine].sum()
        return replace(
            self,
            class_sums=tuple(sums),
            class_weights=weights,
            class_examples=examples,
            class_squares=squares,
            peak=max(self.peak, float(squares.sum())),
        )

    def _check_learnt(self, batch: Batch) -> None:
        n_gone = np.bincount(batch.codes, minlength=self.n_classes)
        weight_gone = np.bincount(batch.codes, batch.weights, minlength=self.n_classes)
        too_many = np.flatnonzero(n_gone > self.class_examples)
        if len(too_many):
            c = int(too_many[0])
            raise ForgetError(
                c, f"{self.class_examples[c]} examples were learnt, {n_gone[c]} are to be forgotten"
            )
        limit = self.class_weights * (1 + _ROUNDING)
        too_heavy = np.flatnonzero(weight_gone > limit)
        if len(too_heavy):
            c = int(too_heavy[0])
            raise ForgetError(
                c,
                f"examples of weight {self.class_weights[c]:g} were learnt, "
                f"of weight {weight_gone[c]:g} are to be forgotten",
            )

    def _check_plausible(self, before: Moments, columns: Sequence[int]) -> None:
        """What is left of these classes must be sums of some examples."""
        for c in columns:
            scale = max(_ROUNDING * before.class_squares[c], _RESIDUE * before.peak)
            # Of no examples every sum is nothing; of any, sum w x.x >= |sum w x|^2 / sum w.
            left, weight = self.class_sums[c], self.class_weights[c]
            least = float(left @ left) / weight if self.class_examples[c] and weight > 0 else 0.0
            none_left = not self.class_examples[c] and abs(self.class_squares[c]) > scale
            if none_left or self.class_squares[c] < least - scale:
                raise ForgetError(c, "these are not the examples that were learnt")
        if self.settled is not None:
            allowed = max(_ROUNDING * before.diagonal.max(), _RESIDUE * before.peak)
            if self.diagonal.min() < -allowed:
                raise ForgetError(columns[0], "these are not the examples that were learnt")

    def _without_residue(self) -> Moments:
        """Nothing of classes without examples, where rounding leaves next to nothing."""
        empty = self.class_examples == 0
        if not empty.any():
            return replace(self, class_squares=np.maximum(self.class_squares, 0.0))
        sums = zip(self.class_sums, empty.tolist(), strict=True)
        return replace(
            self,
            class_sums=tuple(np.zeros_like(total) if none else total for total, none in sums),
            class_weights=np.where(empty, 0.0, self.class_weights),
            class_squares=np.where(empty, 0.0, np.maximum(self.class_squares, 0.0)),
        )

    def relabel(self, columns: Sequence[int], n_classes: int) -> Moments:
        """Class ``k`` becomes class ``columns[k]``; those given one column become one class.

        A column of -1 leaves a class out. Where there is a Gram matrix, it can be taken out of that
        only if the matrix is kept per class or the class has no examples.
        """
        gram, class_grams = self._settle(self.waiting)
        sums = [np.zeros(self.n_features) for _ in range(n_classes)]
        grams = None if class_grams is None else [np.zeros_like(class_grams[0])] * n_classes
        for k, column in enumerate(columns):
            if column == GONE:
                if gram is not None and self.class_examples[k]:
                    if class_grams is None:
                        raise ValueError("these sums have no Gram matrix per class")
                    gram = gram - class_grams[k]
                continue
            sums[column] = sums[column] + self.class_sums[k]
            if grams is not None and class_grams is not None:
                grams[column] = grams[column] + class_grams[k]
        place = np.array(columns)
        weights, examples, squares = (
            _summed(values, place, n_classes)
            for values in (self.class_weights, self.class_examples, self.class_squares)
        )
        per_class = None if grams is None else tuple(grams)
        return Moments(tuple(sums), weights, examples, squares, gram, per_class, self.peak)

    def merged(self, other: Moments, columns: Sequence[int], n_classes: int) -> Moments:
        """Sums over the examples of both; class ``k`` of the other is ``columns[k]`` here."""
        mine = self.with_classes(n_classes)
        theirs = other.relabel(columns, n_classes)
        gram, class_grams = mine._settle(mine.waiting)
        both = None
        if class_grams is not None and theirs.class_settled is not None:
            both = tuple(a + b for a, b in zip(class_grams, theirs.class_settled, strict=True))
        return Moments(
            tuple(a + b for a, b in zip(mine.class_sums, theirs.class_sums, strict=True)),
            mine.class_weights + theirs.class_weights,
            mine.class_examples + theirs.class_examples,
            mine.class_squares + theirs.class_squares,
            None if gram is None or theirs.settled is None else gram + theirs.settled,
            both,
            mine.peak + theirs.peak,
        )


class ForgetError(ValueError):
    """Examples of a class cannot be taken out; the caller knows the class's name."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(reason)
        self.column = column


def _summed(values: npt.NDArray[Any], place: npt.NDArray[Any], n_classes: int) -> Any:
    sums = np.zeros(n_classes, dtype=values.dtype)
    np.add.at(sums, place[place >= 0], values[place >= 0])
    return sums
