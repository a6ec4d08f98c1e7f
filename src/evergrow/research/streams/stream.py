"""The class-incremental protocol as data: which classes arrive when, and when to measure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Integer, Nothing, Number, check_parameters

_RULES = {
    "initial": (Integer(1),),
    "chunk": (Integer(1),),
    "n_classes": (Integer(1), Nothing()),
    "blur": (Number(0.0, 1.0),),
    "disjoint": (Number(0.0, 1.0),),
    "repetitions": (Integer(1),),
    "random_state": (Integer(0),),
}


_ORDERS = ("shuffled", "sorted")


@dataclass(frozen=True, eq=False)
class Step:
    """One batch of a stream: its new classes and training rows.

    Attributes
    ----------
    classes : ndarray
        The new classes, in order of arrival.
    known : ndarray
        All classes so far, including the new ones, in order of arrival.
    rows : ndarray of int
        Indices of the training rows, in increasing order. In a blurry stream, also rows of classes
        known before.
    measured : bool
        Whether the learner is measured after this step.
    """

    classes: Array
    known: Array
    rows: Array
    measured: bool


@dataclass(frozen=True)
class ClassStream:
    """A stream that starts with a few classes and adds the others in batches.

    Parameters
    ----------
    initial : int
        Number of classes in the first batch.
    chunk : int, default=1
        Number of classes in every later batch; the last may have fewer. Larger batches are faster.
    n_classes : int, default=None
        Number of classes of the data to use. None uses all.
    order : {"shuffled", "sorted"} or sequence, default="shuffled"
        Order of the classes. A sequence of labels names all classes to use.
    repetitions : int, default=1
        Number of repetitions, each in another random order.
    measure_at : sequence of int, default=None
        Numbers of known classes at which to measure; None measures after every step.
    blur : float in [0, 1], default=0
        Share of the examples of a class that arrive in a random later batch, so that old and new
        classes are mixed. At least one example arrives with its class, and all examples of the last
        classes do.
    disjoint : float in [0, 1], default=0
        Share of the classes, chosen at random, that are not blurred. For such streams see Koh et
        al., ICLR 2022.
    random_state : int, default=0
        Seed of the order. Repetition ``r`` uses the seed ``random_state + r``.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.research import ClassStream
    >>> y = np.repeat(["ant", "bee", "cow", "dog"], 2)
    >>> for step in ClassStream(initial=2, order="sorted").steps(y):
    ...     print(step.classes.tolist(), step.rows.tolist(), len(step.known))
    ['ant', 'bee'] [0, 1, 2, 3] 2
    ['cow'] [4, 5] 3
    ['dog'] [6, 7] 4
    """

    initial: int
    chunk: int = 1
    n_classes: int | None = None
    order: Literal["shuffled", "sorted"] | Sequence[Any] = "shuffled"
    repetitions: int = 1
    measure_at: Sequence[int] | None = None
    blur: float = 0.0
    disjoint: float = 0.0
    random_state: int = 0

    def __post_init__(self) -> None:
        check_parameters(vars(self), _RULES)
        _check_order(self.order)
        _check_sizes(self.measure_at)

    def sizes(self, n_classes: int) -> list[int]:
        """Return the number of known classes after each step, given the number in the data."""
        end = n_classes if self.n_classes is None else self.n_classes
        if end > n_classes:
            raise InvalidInputError(f"the stream asks for {end} classes, the data have {n_classes}")
        if self.initial > end:
            raise InvalidInputError(
                f"the stream begins with {self.initial} classes, but there are only {end}: "
                "reduce initial"
            )
        return [*range(self.initial, end, self.chunk), end]

    def ordered(self, classes: Array, repetition: int = 0) -> Array:
        """Return the classes in the order of one repetition."""
        if not 0 <= repetition < self.repetitions:
            raise InvalidInputError(
                f"repetition must be from 0 to {self.repetitions - 1}, got {repetition}"
            )
        if not isinstance(self.order, str):
            return _check_named(self.order, classes)
        if self.order == "sorted":
            return np.sort(classes)
        rng = np.random.default_rng(self.random_state + repetition)
        return rng.permutation(np.sort(classes))

    def steps(self, y: npt.ArrayLike, repetition: int = 0) -> Iterator[Step]:
        """Yield the batches of one repetition, given the training labels ``y``."""
        labels = np.asarray(y)
        order = self.ordered(np.unique(labels), repetition)
        sizes = self.sizes(len(order))
        measured = set(sizes if self.measure_at is None else self.measure_at)
        unreachable = measured - set(sizes)
        if unreachable:
            raise InvalidInputError(
                f"measure_at asks for {sorted(unreachable)} classes, "
                f"but the stream passes through {sizes}"
            )
        batch_of_row = self._batches(labels, order, sizes, repetition)
        first = 0
        for batch, end in enumerate(sizes):
            rows = np.flatnonzero(batch_of_row == batch)
            yield Step(order[first:end], order[:end], rows, end in measured)
            first = end

    def _batches(
        self, labels: Array, order: Array, sizes: Sequence[int], repetition: int
    ) -> npt.NDArray[np.intp]:
        """Return the number of the batch of each row, -1 for classes that are left out."""
        # Another generator than that of the order, which a blurry stream leaves as it is.
        rng = np.random.default_rng((self.random_state + repetition, 1))
        batch_of_class = np.searchsorted(sizes, np.arange(sizes[-1]), side="right")
        whole = rng.permutation(len(batch_of_class)) < self.disjoint * len(batch_of_class)
        last = len(sizes) - 1
        batches = np.full(len(labels), -1)
        for label, batch, is_whole in zip(order, batch_of_class, whole, strict=False):
            rows = np.flatnonzero(labels == label)
            batches[rows] = batch
            if self.blur and not is_whole and batch < last:
                n_late = min(round(self.blur * len(rows)), len(rows) - 1)
                late = rng.permutation(rows)[:n_late]
                batches[late] = rng.integers(batch + 1, last, n_late, endpoint=True)
        return batches


def _check_order(order: Any) -> None:
    known = order in _ORDERS if isinstance(order, str) else isinstance(order, Collection)
    if not known:
        raise InvalidInputError(
            f"order must be 'shuffled', 'sorted' or a sequence of labels, got {order!r}"
        )


def _check_sizes(measure_at: Any) -> None:
    rule = Integer(1)
    listed = isinstance(measure_at, Collection) and not isinstance(measure_at, (str, bytes))
    if measure_at is not None and not (listed and all(map(rule.admits, measure_at))):
        raise InvalidInputError(
            f"measure_at must be numbers of classes, each {rule}, or None, got {measure_at!r}"
        )


def _check_named(order: Sequence[Any], classes: Array) -> Array:
    named = np.asarray(order)
    unknown = sorted(set(named.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise InvalidInputError(f"order names classes that are not in the data: {unknown[:5]}")
    if len(np.unique(named)) != len(named):
        raise InvalidInputError("order names a class twice")
    return named.astype(classes.dtype)
