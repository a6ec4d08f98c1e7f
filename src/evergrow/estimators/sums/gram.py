"""Gram matrices, of which only the upper triangle is used.

The matrix over all classes is an array, or a tensor on a GPU; those per class are arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from evergrow.foundation.device import is_tensor, place_like, to_host
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.lapack import add_gram
from evergrow.foundation.rows import places_by_class

if TYPE_CHECKING:
    from evergrow.estimators.sums.moments import Batch

Floats = npt.NDArray[np.float64]


def add_products(gram: Floats, batch: Batch) -> None:
    """Add ``sum w x x'`` to the upper triangle of a matrix, in place."""
    if len(batch.rows):
        add_gram(gram, place_like(batch.scaled, gram), batch.sign)


def add_class_products(class_grams: tuple[Floats, ...], batch: Batch) -> None:
    """Add the products of each class to the matrix of that class, in place."""
    for column, places in places_by_class(batch.codes):
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
    """Return the upper triangle of a matrix, row by row, without negative sums of squares.

    >>> pack(np.array([[1.0, 2.0], [0.0, -1e-9]]))
    array([1., 2., 0.])
    """
    rows, columns = np.triu_indices(len(gram))
    triangle: Floats = to_host(gram)[rows, columns]
    # Rounding may leave them negative after forgetting.
    triangle[(rows == columns) & (triangle < 0)] = 0.0
    return triangle


def unpack(triangle: Floats, n_features: int) -> Floats:
    """Return a matrix with this upper triangle and zeros below it."""
    size = n_features * (n_features + 1) // 2
    if triangle.shape != (size,):
        raise InvalidInputError(
            f"the products of {n_features} features must be {size}, got {len(triangle)}"
        )
    gram = np.zeros((n_features, n_features))
    gram[np.triu_indices(n_features)] = triangle
    return gram


def copy(gram: Floats) -> Floats:
    """Return a copy of a matrix, where it lies."""
    return gram.clone() if is_tensor(gram) else gram.copy()  # type: ignore[attr-defined]


def select(gram: Floats, places: npt.NDArray[np.int64] | slice) -> Floats:
    """Return the rows and columns of some features, in ascending order."""
    if isinstance(places, slice):
        return gram[places, places]
    if is_tensor(gram):
        index: Any = place_like(places, gram)
        return cast("Floats", gram[index][:, index])
    return gram[np.ix_(places, places)]
