"""Some examples with weights, and what they add to sums of products."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas

__all__ = [
    "Batch",
    "add_class_products",
    "add_products",
    "copies",
    "joined_batches",
    "packed",
    "unpacked",
]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of features, the column of each one's class, and its weight."""

    rows: Floats
    codes: Codes
    weights: Floats
    sign: int = 1
    # Names the sums that include this batch.
    token: object = field(default_factory=object)

    @classmethod
    def of(cls, rows: Floats, codes: Codes, weights: Floats | None = None) -> Batch:
        """A batch; weights are 1 where not given."""
        return cls(rows, codes, np.ones(len(rows)) if weights is None else weights)

    @cached_property
    def roots(self) -> Floats:
        """Square roots of the weights."""
        return np.sqrt(self.weights)

    @cached_property
    def scaled(self) -> Floats:
        """Rows times the square roots of their weights."""
        return self.rows if (self.weights == 1.0).all() else self.rows * self.roots[:, None]

    def places_by_class(self) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
        """Of every class that is there its column and its places, in the order of the columns."""
        # Sorted once: to look for each class would cost the number of rows times that of classes.
        order = np.argsort(self.codes, kind="stable")
        columns, counts = np.unique(self.codes, return_counts=True)
        last = 0
        for column, count in zip(columns.tolist(), counts.tolist(), strict=True):
            first, last = last, last + count
            yield column, order[first:last]


def add_products(gram: Floats, batch: Batch) -> None:
    """Add ``sum w x x'`` to the upper triangle of a matrix, in place."""
    if len(batch.rows):
        rows = batch.scaled
        # What is upper and by rows here is lower and by columns there.
        blas.dsyrk(batch.sign, rows.T, beta=1.0, c=gram.T, lower=1, overwrite_c=1)


def add_class_products(class_grams: tuple[Floats, ...], batch: Batch) -> None:
    """Add each class's products to its own matrix, in place."""
    for column, mine in batch.places_by_class():
        part = Batch(batch.rows[mine], batch.codes[mine], batch.weights[mine], batch.sign)
        add_products(class_grams[column], part)


def joined_batches(batches: Sequence[Batch]) -> list[Batch]:
    """Few large batches instead of many small ones."""
    joined = []
    for sign in (1, -1):
        some = [batch for batch in batches if batch.sign == sign]
        if some:
            rows = np.concatenate([batch.rows for batch in some])
            codes = np.concatenate([batch.codes for batch in some])
            joined.append(Batch(rows, codes, np.concatenate([b.weights for b in some]), sign))
    return joined


def copies(grams: tuple[Floats, ...] | None, columns: Iterable[int]) -> tuple[Floats, ...] | None:
    """Matrices of which those of some columns may be changed."""
    if grams is None:
        return None
    changed = set(columns)
    return tuple(gram.copy() if k in changed else gram for k, gram in enumerate(grams))


def packed(gram: Floats) -> Floats:
    """The upper triangle of a matrix, row by row.

    >>> packed(np.array([[1.0, 2.0], [0.0, 3.0]]))
    array([1., 2., 3.])
    """
    triangle: Floats = gram[np.triu_indices(len(gram))]
    return triangle


def unpacked(triangle: Floats, n_features: int) -> Floats:
    """A matrix with this upper triangle, and nothing below it."""
    gram = np.zeros((n_features, n_features))
    gram[np.triu_indices(n_features)] = triangle
    return gram
