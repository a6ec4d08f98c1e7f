"""The validation stream: every n-th example of each class, a bounded number of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.errors import ModelFileError
from evergrow.modelfile import check_array

__all__ = ["HeldOut"]

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _OfClass:
    """Examples of one class that were held out, and how many there were to choose from."""

    rows: tuple[npt.NDArray[Any], ...] = ()
    weights: tuple[float, ...] = ()
    n_seen: int = 0
    n_offered: int = 0

    def thinned(self, room: int, key: list[int]) -> _OfClass:
        """A uniform choice of at most ``room`` of them."""
        if len(self.rows) <= room:
            return self
        kept = np.sort(_generator(key).choice(len(self.rows), room, replace=False)).tolist()
        rows = tuple(self.rows[i] for i in kept)
        return replace(self, rows=rows, weights=tuple(self.weights[i] for i in kept))

    def offer(self, row: npt.NDArray[Any], weight: float, room: int, key: list[int]) -> _OfClass:
        """Algorithm R: the n-th example offered takes a place with probability room / n."""
        n_offered = self.n_offered + 1
        grown = replace(self, n_offered=n_offered)
        if len(self.rows) < room:
            return replace(grown, rows=(*self.rows, row), weights=(*self.weights, weight))
        place = int(_generator([*key, n_offered]).integers(n_offered))
        if place >= room:
            return grown
        rows, weights = list(self.rows), list(self.weights)
        rows[place], weights[place] = row, weight
        return replace(grown, rows=tuple(rows), weights=tuple(weights))

    def without(self, row: npt.NDArray[Any]) -> _OfClass:
        """Without one example that equals this row, if there is any."""
        for place, held in enumerate(self.rows):
            if np.array_equal(held, row):
                kept = [i for i in range(len(self.rows)) if i != place]
                rows = tuple(self.rows[i] for i in kept)
                return replace(self, rows=rows, weights=tuple(self.weights[i] for i in kept))
        return self


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out examples per class, as they came in; a value that never changes."""

    seed: int
    classes: tuple[_OfClass, ...] = ()

    def __len__(self) -> int:
        """Count the examples."""
        return sum(len(held.rows) for held in self.classes)

    def with_classes(self, n_classes: int) -> HeldOut:
        """As many classes as this."""
        new = n_classes - len(self.classes)
        return replace(self, classes=self.classes + (_OfClass(),) * new) if new else self

    def offer(
        self, X: npt.NDArray[Any], codes: Codes, weights: Floats, every: int, limit: int
    ) -> HeldOut:
        """Count examples and keep every ``every``-th of each class, ``limit`` of all classes."""
        classes = list(self.classes)
        room = max(1, limit // max(1, len(classes)))
        classes = [held.thinned(room, [self.seed, c, 0]) for c, held in enumerate(classes)]
        for c in np.unique(codes).tolist():
            held, mine = classes[c], np.flatnonzero(codes == c)
            place = held.n_seen + 1 + np.arange(len(mine))
            classes[c] = replace(held, n_seen=held.n_seen + len(mine))
            for i in mine[place % every == 0].tolist():
                # A copy: a view would hold on to the caller's whole matrix.
                row = np.array(X[i])
                classes[c] = classes[c].offer(row, float(weights[i]), room, [self.seed, c, 1])
        return replace(self, classes=tuple(classes))

    def without(self, X: npt.NDArray[Any], codes: Codes) -> HeldOut:
        """Without examples that are forgotten."""
        classes = list(self.classes)
        for row, c in zip(X, codes.tolist(), strict=True):
            classes[c] = classes[c].without(row)
        for c, n_gone in enumerate(np.bincount(codes, minlength=len(classes)).tolist()):
            classes[c] = replace(classes[c], n_seen=max(0, classes[c].n_seen - n_gone))
        return replace(self, classes=tuple(classes))

    def relabel(self, columns: list[int], n_classes: int) -> HeldOut:
        """Class ``k`` becomes class ``columns[k]``, or goes if that is negative."""
        classes = [_OfClass() for _ in range(n_classes)]
        for column, held in zip(columns, self.classes, strict=True):
            if column >= 0:
                classes[column] = _joined(classes[column], held)
        return replace(self, classes=tuple(classes))

    def merged(self, other: HeldOut, columns: list[int], n_classes: int, limit: int) -> HeldOut:
        """The examples of both, a choice where there are too many."""
        mine, theirs = self.with_classes(n_classes), other.relabel(columns, n_classes)
        room = max(1, limit // max(1, n_classes))
        both = zip(mine.classes, theirs.classes, strict=True)
        joint = [_joined(a, b).thinned(room, [self.seed, c, 2]) for c, (a, b) in enumerate(both)]
        return replace(mine, classes=tuple(joint))

    def arrays(self) -> tuple[npt.NDArray[Any], Codes, Floats]:
        """Rows, codes and weights of all examples."""
        rows = [row for held in self.classes for row in held.rows]
        codes = [c for c, held in enumerate(self.classes) for _ in held.rows]
        weights = [weight for held in self.classes for weight in held.weights]
        return np.array(rows), np.array(codes, dtype=np.int32), np.array(weights)

    def to_tensors(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """As named arrays."""
        counts = [(held.n_seen, held.n_offered) for held in self.classes]
        yield "held_out.counts", np.array(counts, dtype=np.int64).reshape(len(counts), 2)
        if len(self):
            rows, codes, weights = self.arrays()
            yield "held_out.rows", rows.astype(np.float64)
            yield "held_out.codes", codes
            yield "held_out.weights", weights

    @classmethod
    def from_tensors(
        cls, tensors: dict[str, npt.NDArray[Any]], seed: int, n_features: int, n_classes: int
    ) -> HeldOut:
        """Rebuild from :meth:`to_tensors`; a ``ModelFileError`` if the arrays do not fit."""
        counts = check_array(
            tensors.get("held_out.counts"), "held_out.counts", np.int64, (n_classes, 2)
        )
        rows: npt.NDArray[Any] = np.zeros((0, n_features))
        codes: npt.NDArray[Any] = np.zeros(0, dtype=np.int32)
        weights: npt.NDArray[Any] = np.zeros(0)
        if "held_out.rows" in tensors:
            rows = check_array(
                tensors["held_out.rows"], "held_out.rows", np.float64, (None, n_features)
            )
            n = len(rows)
            codes = check_array(tensors.get("held_out.codes"), "held_out.codes", np.int32, (n,))
            weights = check_array(
                tensors.get("held_out.weights"), "held_out.weights", np.float64, (n,)
            )
        held = np.bincount(codes[codes >= 0], minlength=n_classes)
        if (codes < 0).any() or len(held) > n_classes or (weights <= 0).any():
            raise ModelFileError("the model file is inconsistent: held_out has unknown classes")
        if (counts < 0).any() or (held > counts[:, 0]).any():
            raise ModelFileError("the model file is inconsistent: held_out counts too few")
        classes = [
            _OfClass(
                tuple(np.array(row) for row in rows[codes == c]),
                tuple(weights[codes == c].tolist()),
                int(counts[c, 0]),
                max(int(counts[c, 1]), int(held[c])),
            )
            for c in range(n_classes)
        ]
        return cls(seed, tuple(classes))


def _joined(a: _OfClass, b: _OfClass) -> _OfClass:
    return _OfClass(
        a.rows + b.rows, a.weights + b.weights, a.n_seen + b.n_seen, a.n_offered + b.n_offered
    )


def _generator(key: list[int]) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(key))
