"""Gram matrices, of which only the upper triangle is used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evergrow.foundation.lapack import add_gram

if TYPE_CHECKING:
    from evergrow.estimators.sums.moments import Batch

Floats = npt.NDArray[np.float64]


def add_products(gram: Floats, batch: Batch) -> None:
    """Add ``sum w x x'`` to the upper triangle of a matrix, in place."""
    if len(batch.rows):
        add_gram(gram, batch.scaled, batch.sign)


def add_class_products(class_grams: tuple[Floats, ...], batch: Batch) -> None:
    """Add the products of each class to the matrix of that class, in place."""
    for column, places in batch.places_by_class():
        add_products(class_grams[column], batch.at(places))


def copy_columns(
    grams: tuple[Floats, ...] | None, columns: Iterable[int]
) -> tuple[Floats, ...] | None:
    """Copy the matrices of some columns, so that these may be changed in place."""
    if grams is None:
        return None
    changed = set(columns)
    return tuple(gram.copy() if k in changed else gram for k, gram in enumerate(grams))


def pack(gram: Floats) -> Floats:
    """Return the upper triangle of a matrix, row by row.

    >>> pack(np.array([[1.0, 2.0], [0.0, 3.0]]))
    array([1., 2., 3.])
    """
    return np.asarray(gram[np.triu_indices(len(gram))])


def unpack(triangle: Floats, n_features: int) -> Floats:
    """Return a matrix with this upper triangle and zeros below it."""
    gram = np.zeros((n_features, n_features))
    gram[np.triu_indices(n_features)] = triangle
    return gram
