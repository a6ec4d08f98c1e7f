"""Sums over weighted examples: all that least squares and class means keep of their data.

The sums do not depend on the order of the examples or on how they were split into calls. Examples
can be subtracted again, and the sums of two machines add up to those of one.

Products of numbers far from zero lose what tells examples apart. So there may be a shift, a point
near the first examples, which is subtracted from every row before it is added up. Sums about one
point give those about any other.

Sums are immutable. Single examples are not added to the large Gram matrix at once but wait in a
short list, so that learning one example takes time linear in the number of features.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.gram import (
    add_class_products,
    add_products,
    copy,
    copy_columns,
    pack,
    select,
    unpack,
)
from evergrow.foundation.device import Device, is_tensor, place_like, to_host
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import GONE
from evergrow.foundation.params import Number
from evergrow.foundation.rows import places_by_class
from evergrow.storage.models.codec import MOST_COUNTED, Array, Fields

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]

# Single examples wait until there are this many. Half of them are then added to the Gram matrix
# in one matrix product; the other half stays available for solvers that follow the examples.
WAITING = 256
# Batches of this many rows are added at once.
FEW = 32
# Rounding error of sums and of differences between them, relative to the sums.
ROUNDING = 1e-14
# No sums of a model file have larger means, or products of them.
_LARGEST_MEAN = 1e141
_LARGEST_PRODUCT = _LARGEST_MEAN**2
# Features are shifted if their mean is this many deviations from zero: products lose the square.
# What does not differ yet, such as a single example, is shifted from 10,000 on.
_FAR, _UNKNOWN_SPREAD = 64.0, 156.25


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of features with the column of their class and their weight."""

    rows: Floats
    codes: Codes
    weights: Floats
    # -1 to subtract the batch from sums.
    sign: int = 1
    # Identifies the sums that end with this batch.
    token: object = field(default_factory=object)

    @classmethod
    def of(cls, rows: Floats, codes: Codes, weights: Floats | None = None) -> Batch:
        """Make a batch; the weights default to 1."""
        return cls(rows, codes, np.ones(len(rows)) if weights is None else weights)

    @cached_property
    def roots(self) -> Floats:
        """Square roots of the weights."""
        return np.sqrt(self.weights)

    @cached_property
    def scaled(self) -> Floats:
        """Rows times the square roots of their weights."""
        return self.rows if (self.weights == 1.0).all() else self.rows * self.roots[:, None]

    def at(self, places: npt.NDArray[Any]) -> Batch:
        """Return the examples at some places."""
        return Batch(self.rows[places], self.codes[places], self.weights[places], self.sign)

    def negated(self) -> Batch:
        """Return the batch with the sign that subtracts it."""
        return Batch(self.rows, self.codes, self.weights, sign=-1)


def choose_shift(mean: Floats, spread: Floats) -> Floats | None:
    """Return what to subtract from features of some mean and deviation; None for nothing.

    It is the mean of features far from zero, rounded to a multiple of a power of two about as large
    as their deviation, so that it tells hardly anything of single examples.

    >>> choose_shift(np.array([1e9 + 5.0, 5.0]), np.array([4.0, 4.0])).tolist()
    [1000000004.0, 0.0]
    """
    spread = np.where(spread > 0, spread, _UNKNOWN_SPREAD)
    far = np.abs(mean) > _FAR * spread
    if not far.any():
        return None
    spread = np.maximum(spread, np.finfo(np.float64).eps * np.abs(mean))
    step = 2.0 ** np.ceil(np.log2(np.where(far, spread, 1.0)))
    return np.where(far, np.rint(mean / step) * step, 0.0)


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over examples ``x`` of class ``c`` with weight ``w``, each without the shift.

    Attributes
    ----------
    class_sums : tuple of ndarray of shape (n_features,)
        ``sum w x`` per class: the columns of ``b = X'Y`` of least squares.
    class_weights, class_examples : ndarray of shape (n_classes,)
        ``sum w`` and the number of examples per class.
    class_squares : ndarray of shape (n_classes,)
        ``sum w x.x`` per class.
    settled : ndarray of shape (n_features, n_features) or None
        Upper triangle of ``sum w x x'`` over all but the waiting examples; None if not wanted. A
        tensor if it was computed on a GPU.
    class_settled : tuple of ndarray or None
        The same per class; None if not wanted.
    peak : float
        Largest value that ``sum w x.x`` over all examples ever had: rounding is relative to it.
    waiting : tuple of Batch
        The latest examples, not yet in ``settled``.
    token : object
        Identifies the sums without the waiting examples.
    shift : ndarray of shape (n_features,) or None
        What is subtracted from every row before it is added up; None for nothing.
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
    shift: Floats | None = None

    _stored: ClassVar[Fields] = {
        "class_sums": Array(np.float64, ("classes", "features"), filled=True),
        "class_weights": Array(np.float64, ("classes",), 0.0),
        "class_examples": Array(np.int64, ("classes",), 0, total=MOST_COUNTED),
        "class_squares": Array(np.float64, ("classes",), 0.0),
        "peak": [Number(0.0)],
        "shift": Array(np.float64, ("features",), -_LARGEST_MEAN, _LARGEST_MEAN, optional=True),
        # Of symmetric matrices the upper triangle, row by row.
        "gram": Array(
            np.float64, ("products",), -_LARGEST_PRODUCT, _LARGEST_PRODUCT, optional=True
        ),
        "class_grams": Array(
            np.float64, ("classes", "products"), -_LARGEST_PRODUCT, _LARGEST_PRODUCT, optional=True
        ),
    }

    def stored_fields(self) -> dict[str, Any]:
        """Return the sums as they are in a model file."""
        gram, class_grams = self.settle()
        return {
            "class_sums": self.sums,
            "gram": None if gram is None else pack(gram),
            "class_grams": None if class_grams is None else np.array([*map(pack, class_grams)]),
        }

    @classmethod
    def from_stored(cls, fields: dict[str, Any]) -> Moments:
        """Rebuild from a model file.

        A Gram matrix need not be positive definite: after forgetting, rounding may leave it
        indefinite.
        """
        sums, gram, grams = (fields.pop(name) for name in ("class_sums", "gram", "class_grams"))
        n_features = sums.shape[1]
        settled = None if gram is None else unpack(gram, n_features)
        per_class = None if grams is None else tuple(unpack(each, n_features) for each in grams)
        return cls(tuple(sums), **fields, settled=settled, class_settled=per_class)

    def check_stored(self) -> None:
        """Raise a ``ValueError`` for sums that no examples have."""
        present = self.class_examples > 0
        if not present.any() or ((self.class_weights > 0) != present).any():
            raise InvalidInputError("it has classes without weight")
        with np.errstate(over="ignore"):
            means = np.abs(self.sums[present]) / self.class_weights[present, None]
        if self.sums[~present].any() or not (means <= _LARGEST_MEAN).all():
            raise InvalidInputError("its class sums are out of range")
        if self.class_settled is not None and self.settled is None:
            raise InvalidInputError("it has products per class, but not those of all")
        for gram in (self.settled, *(self.class_settled or ())):
            if gram is not None and (np.diagonal(gram) < 0).any():
                raise InvalidInputError("gram has a negative diagonal")

    @classmethod
    def none(
        cls,
        n_features: int,
        n_classes: int,
        *,
        gram: bool,
        per_class: bool = False,
        shift: Floats | None = None,
    ) -> Moments:
        """Return the sums over no examples."""
        square = (n_features, n_features)
        return cls(
            tuple(np.zeros(n_features) for _ in range(n_classes)),
            np.zeros(n_classes),
            np.zeros(n_classes, dtype=np.int64),
            np.zeros(n_classes),
            np.zeros(square) if gram else None,
            tuple(np.zeros(square) for _ in range(n_classes)) if per_class else None,
            shift=shift,
        )

    def shifted(self, batch: Batch) -> Batch:
        """Return examples as they are added up, without the shift."""
        return batch if self.shift is None else replace(batch, rows=batch.rows - self.shift)

    def about(self, shift: Floats | None) -> Moments:
        """Return the sums over the same examples with another shift."""
        before, after = self.origin, np.zeros(self.n_features) if shift is None else shift
        if np.array_equal(before, after):
            return replace(self, shift=shift)
        move, weights, sums = before - after, self.class_weights, self.sums
        squares = self.class_squares + 2 * sums @ move + weights * float(move @ move)
        gram, grams = self.settle()
        if gram is not None:
            gram = gram + place_like(_moved(sums.sum(axis=0), self.weight, move), gram)
        if grams is not None:
            parts = zip(grams, sums, weights.tolist(), strict=True)
            grams = tuple(one + _moved(total, weight, move) for one, total, weight in parts)
        return replace(
            self,
            class_sums=tuple(sums + weights[:, None] * move),
            class_squares=np.maximum(squares, 0.0),
            settled=gram,
            class_settled=grams,
            peak=max(self.peak, float(squares.sum())),
            waiting=(),
            token=object(),
            shift=shift,
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

    @property
    def has_forgotten(self) -> bool:
        """Whether the sums were once larger than now, because examples were forgotten."""
        return self.peak > self.squares * (1 + ROUNDING)

    @cached_property
    def sums(self) -> Floats:
        """The class sums as one matrix of shape (n_classes, n_features)."""
        return np.array(self.class_sums)

    @cached_property
    def means(self) -> Floats:
        """Class means [Ristin2014 Eq. 1]; zero for a class without examples."""
        weights = self.class_weights[:, None]
        return np.divide(self.sums, weights, out=np.zeros_like(self.sums), where=weights > 0)

    @property
    def origin(self) -> Floats:
        """The point that the sums are about."""
        return np.zeros(self.n_features) if self.shift is None else self.shift

    @cached_property
    def gram(self) -> Floats:
        """Upper triangle of ``sum w x x'`` over all examples."""
        if self.settled is None:
            raise InvalidInputError("these sums have no Gram matrix")
        if not self.waiting:
            return self.settled
        gram = copy(self.settled)
        for batch in self.waiting:
            add_products(gram, batch)
        return gram

    def check_finite(self, before: Moments | None = None) -> None:
        """Raise a ``ValueError`` if the sums overflow or the weights differ too much.

        Also if next to them the sums ``before``, from which they grew, are rounding errors.
        """
        known = self.class_weights > 0
        with np.errstate(over="ignore"):
            shares = self.weight / self.class_weights[known]
        if not (np.isfinite(self.class_squares).all() and np.isfinite(shares).all()):
            raise InvalidInputError(
                "the weighted examples are too large to add up, or their weights differ too much"
            )
        if before is None or not before.n_examples:
            return
        size = before.squares + before.weight * float(before.origin @ before.origin)
        if 0 < size < np.finfo(np.float64).eps * self.squares:
            raise InvalidInputError(
                "the examples are so much larger than all before that nothing would be left of "
                "these but rounding errors"
            )

    @cached_property
    def _n_waiting(self) -> int:
        return sum(len(batch.rows) for batch in self.waiting)

    @cached_property
    def diagonal(self) -> Floats:
        """Diagonal of the Gram matrix."""
        if self.settled is None:
            raise InvalidInputError("these sums have no Gram matrix")
        diagonal: Floats = np.array(to_host(self.settled.diagonal()))
        for batch in self.waiting:
            diagonal += _diagonal(batch)
        return diagonal

    def placed(self, device: Device | None) -> Moments:
        """Return the same sums with the Gram matrix on a device, None for the processor."""
        at: Any = self.settled
        if at is None or (Device(str(at.device)) if is_tensor(at) else None) == device:
            return self
        settled = to_host(at) if device is None else device.tensor(at)
        return replace(self, settled=settled).with_new_tokens()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without tensors: another process may have no GPU, and no torch."""
        state = {name: value for name, value in vars(self).items() if name != "gram"}
        if is_tensor(self.settled):
            state["settled"] = to_host(self.settled)
        return state

    def follow(self, token: object) -> tuple[Batch, ...] | None:
        """Return what was added since the sums with this token; None if that is too long ago."""
        tokens = [self.token, *(batch.token for batch in self.waiting)]
        # From the end: the token is nearly always the last one or the one before.
        for place in range(len(tokens) - 1, -1, -1):
            if tokens[place] is token:
                return self.waiting[place:]
        return None

    @property
    def latest(self) -> object:
        """Identifies these sums."""
        return self.waiting[-1].token if self.waiting else self.token

    def with_classes(self, n_classes: int) -> Moments:
        """Append classes without examples until there are this many [Camoriano2017 Eq. 20]."""
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
        """Add examples of known classes [Camoriano2017 Eq. 18, 19]."""
        return self._add_few(batch) if len(batch.rows) < FEW else self.add_all([batch])

    def _add_few(self, batch: Batch) -> Moments:
        batch = self.shifted(batch)
        added = self.with_sums([batch])
        if self.settled is None:
            return added
        waiting, n_waiting = (*self.waiting, batch), self._n_waiting + len(batch.rows)
        if n_waiting <= WAITING:
            added = replace(added, waiting=waiting)
            # What was computed from all that wait follows the new ones.
            vars(added)["_n_waiting"] = n_waiting
            if "diagonal" in vars(self):
                vars(added)["diagonal"] = self.diagonal + _diagonal(batch)
            return added
        n_old = max(1, len(waiting) // 2)
        old, recent = waiting[:n_old], waiting[n_old:]
        settled, class_settled = added.settle(old)
        return replace(
            added,
            settled=settled,
            class_settled=class_settled,
            waiting=recent,
            token=old[-1].token,
        )

    def add_all(self, batches: Iterable[Batch]) -> Moments:
        """Add many examples, a batch at a time."""
        # All batches are added to one new Gram matrix, which is not shared until it is complete.
        gram, class_grams = self.settle()
        if gram is self.settled:
            gram = None if gram is None else copy(gram)
        class_grams = copy_columns(class_grams, range(self.n_classes))
        added = replace(self, waiting=(), token=object())
        for batch in map(self.shifted, batches):
            added = added.with_sums([batch])
            if gram is not None:
                add_products(gram, batch)
            if class_grams is not None:
                add_class_products(class_grams, batch)
        return replace(added, settled=gram, class_settled=class_grams)

    def with_new_tokens(self) -> Moments:
        """Return the same sums with tokens that no solver knows, so that solvers start again."""
        if self.class_settled is None:
            waiting = tuple(replace(batch, token=object()) for batch in self.waiting)
            return replace(self, waiting=waiting, token=object())
        # Waiting examples would be added to the matrices of their former classes.
        gram, class_grams = self.settle()
        return replace(self, settled=gram, class_settled=class_grams, waiting=(), token=object())

    def with_features(self, places: npt.NDArray[np.int64] | slice, *, gram: bool = True) -> Moments:
        """Return the sums over some of the features, in ascending order.

        The sums of squares of the classes are those of all features, scaled to the new total. With
        ``gram=False`` the Gram matrix, which is large, is left out.
        """
        settled, squares = None, self.class_squares
        if gram:
            settled = select(self.gram, places)
        if self.settled is not None:
            total = max(self.squares, np.finfo(np.float64).tiny)
            squares = squares * (float(self.diagonal[places].sum()) / total)
        return Moments(
            tuple(sums[places] for sums in self.class_sums),
            self.class_weights,
            self.class_examples,
            squares,
            settled,
            None,
            self.peak,
            shift=None if self.shift is None else self.shift[places],
        )

    def without_empty(self) -> Moments:
        """Leave out the columns of classes without examples."""
        present = self.class_examples > 0
        if present.all():
            return self
        columns = np.where(present, np.cumsum(present) - 1, GONE)
        return self.relabel(columns.tolist(), int(present.sum()))

    def settle(
        self, batches: Sequence[Batch] | None = None
    ) -> tuple[Floats | None, tuple[Floats, ...] | None]:
        """Return the Gram matrix, and those per class, with waiting examples added.

        ``batches`` defaults to all that wait. The matrices are new ones if there are any batches,
        and None where they are not kept.
        """
        batches = self.waiting if batches is None else batches
        if self.settled is None or not batches:
            return self.settled, self.class_settled
        few = _join(batches)
        gram = copy(self.settled)
        columns = {c for batch in few for c in np.unique(batch.codes).tolist()}
        class_grams = copy_columns(self.class_settled, columns)
        for batch in few:
            add_products(gram, batch)
            if class_grams is not None:
                add_class_products(class_grams, batch)
        return gram, class_grams

    def with_sums(self, batches: Iterable[Batch]) -> Moments:
        """Add examples to every sum but the Gram matrices."""
        sums = list(self.class_sums)
        weights, examples = self.class_weights.copy(), self.class_examples.copy()
        squares = self.class_squares.copy()
        for batch in batches:
            norms = np.einsum("ij,ij->i", batch.scaled, batch.scaled)
            for column, mine in places_by_class(batch.codes):
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

    def relabel(self, columns: Sequence[int], n_classes: int) -> Moments:
        """Turn class ``k`` into class ``columns[k]``; classes with the same column become one.

        A column of -1 leaves a class out. If there is a Gram matrix, this needs the Gram matrices
        per class, unless the class has no examples.
        """
        gram, class_grams = self.settle()
        sums = [np.zeros(self.n_features) for _ in range(n_classes)]
        grams = None if class_grams is None else [np.zeros_like(class_grams[0])] * n_classes
        for k, column in enumerate(columns):
            if column == GONE:
                if gram is not None and self.class_examples[k]:
                    if class_grams is None:
                        raise InvalidInputError("these sums have no Gram matrix per class")
                    gram = gram - place_like(class_grams[k], gram)
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
        return Moments(
            tuple(sums), weights, examples, squares, gram, per_class, self.peak, shift=self.shift
        )

    def merged(self, other: Moments, columns: Sequence[int], n_classes: int) -> Moments:
        """Add the sums of another; its class ``k`` is class ``columns[k]`` here."""
        mine = self.with_classes(n_classes)
        theirs = other.about(self.shift).relabel(columns, n_classes)
        gram, class_grams = mine.settle()
        both = None
        if class_grams is not None and theirs.class_settled is not None:
            both = tuple(a + b for a, b in zip(class_grams, theirs.class_settled, strict=True))
        return Moments(
            tuple(a + b for a, b in zip(mine.class_sums, theirs.class_sums, strict=True)),
            mine.class_weights + theirs.class_weights,
            mine.class_examples + theirs.class_examples,
            mine.class_squares + theirs.class_squares,
            None if gram is None or theirs.settled is None else _add_grams(gram, theirs.settled),
            both,
            mine.peak + theirs.peak,
            shift=self.shift,
        )


def _moved(total: Floats, weight: float, move: Floats) -> Floats:
    """Return what the products of rows grow by if the rows, of this total and weight, move."""
    product = np.outer(total, move)
    return product + product.T + weight * np.outer(move, move)


def _diagonal(batch: Batch) -> Floats:
    """Return what a batch adds to the diagonal of the Gram matrix."""
    return np.asarray(batch.sign * np.einsum("ij,ij->j", batch.scaled, batch.scaled))


def _add_grams(mine: Floats, theirs: Floats) -> Floats:
    """Return the sum of two matrices, where the first one lies."""
    there: Floats = place_like(theirs, mine) if is_tensor(mine) else to_host(theirs)
    return mine + there


def _summed(values: npt.NDArray[Any], place: npt.NDArray[Any], n_classes: int) -> Any:
    sums = np.zeros(n_classes, dtype=values.dtype)
    np.add.at(sums, place[place >= 0], values[place >= 0])
    return sums


def _join(batches: Sequence[Batch]) -> list[Batch]:
    """Join many small batches into one per sign."""
    joined = []
    for sign in (1, -1):
        some = [batch for batch in batches if batch.sign == sign]
        if some:
            rows = np.concatenate([batch.rows for batch in some])
            codes = np.concatenate([batch.codes for batch in some])
            joined.append(Batch(rows, codes, np.concatenate([b.weights for b in some]), sign))
    return joined
