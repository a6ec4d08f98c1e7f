"""Sums over examples to the arrays of a model file, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.sums.batches import packed, unpacked
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.errors import ModelFileError
from evergrow.storage.modelfile import check_array

__all__ = ["moments_from_tensors", "moments_to_tensors"]

Floats = npt.NDArray[np.float64]

# More examples, and larger means, than any model can have learnt.
_MOST = 2**53
_LARGEST = 1e141


def moments_to_tensors(moments: Moments) -> dict[str, npt.NDArray[Any]]:
    """As named arrays; of symmetric matrices the upper triangle, row by row."""
    tensors: dict[str, npt.NDArray[Any]] = {
        "class_sums": moments.sums,
        "class_weights": moments.class_weights,
        "class_examples": moments.class_examples,
        "class_squares": moments.class_squares,
        "peak": np.array([moments.peak]),
    }
    gram, class_grams = moments.settled_grams()
    if gram is not None:
        tensors["gram"] = _triangle(gram)
    if class_grams is not None:
        tensors["class_grams"] = np.array([_triangle(gram) for gram in class_grams])
    return tensors


def moments_from_tensors(
    tensors: dict[str, npt.NDArray[Any]], n_features: int, n_classes: int
) -> Moments:
    """Rebuild from :func:`moments_to_tensors`; a ``ModelFileError`` if the arrays do not fit."""
    d, n = n_features, n_classes
    sums = check_array(tensors.get("class_sums"), "class_sums", np.float64, (n, d))
    weights = check_array(tensors.get("class_weights"), "class_weights", np.float64, (n,))
    examples = check_array(tensors.get("class_examples"), "class_examples", np.int64, (n,))
    squares = check_array(tensors.get("class_squares"), "class_squares", np.float64, (n,))
    peak = check_array(tensors.get("peak"), "peak", np.float64, (1,))
    if min(weights.min(), examples.min(), squares.min(), peak[0]) < 0 or examples.max() > _MOST:
        raise ModelFileError("the model file is inconsistent: it counts less than nothing")
    present = examples > 0
    if not present.any() or ((weights > 0) != present).any():
        raise ModelFileError("the model file is inconsistent: it has classes without weight")
    with np.errstate(over="ignore"):
        means = np.abs(sums[present]) / weights[present, None]
    if sums[~present].any() or not (means <= _LARGEST).all():
        raise ModelFileError("the model file is inconsistent: its sums are of no examples")
    gram, grams = None, None
    if "gram" in tensors:
        size = d * (d + 1) // 2
        gram = unpacked(check_array(tensors["gram"], "gram", np.float64, (size,)), d)
        _check_products(gram)
        if "class_grams" in tensors:
            packed = check_array(tensors["class_grams"], "class_grams", np.float64, (n, size))
            grams = tuple(unpacked(row, d) for row in packed)
    return Moments(tuple(sums), weights, examples, squares, gram, grams, float(peak[0]))


def _triangle(gram: Floats) -> Floats:
    # Sums of squares, which rounding may leave below nothing where examples were taken out.
    whole = gram.copy()
    np.einsum("ii->i", whole)[:] = np.maximum(np.diagonal(gram), 0.0)
    return packed(whole)


def _check_products(gram: Floats) -> None:
    """Raise a ``ModelFileError`` for what cannot be sums of products.

    Not more than this: what rounding leaves of forgotten examples need not be definite.
    """
    if (np.diagonal(gram) < 0).any():
        raise ModelFileError("the model file is inconsistent: gram has a negative diagonal")
    if np.abs(gram).max() > _LARGEST**2:
        raise ModelFileError("the model file is inconsistent: gram holds no sums of products")
