"""True labels of test samples as columns of the answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.subcategory.hierarchy import LabelTree
from evergrow.estimators.subcategory.label_columns import is_flat, label_columns, read_column

__all__ = ["true_columns"]

# The column of a class that the model does not know.
_NONE = -1


def true_columns(Y: Any, tree: LabelTree) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """By sample the column that would be right, -1 if there is none, and whether that is known.

    It is not where the fine label is missing though the coarse class has fine ones.
    """
    columns = label_columns(Y)
    place = {tree.names[c]: k for k, c in enumerate(tree.columns.tolist())}
    divided = {tree.names[c] for c in np.flatnonzero(tree.is_divided).tolist()}
    if is_flat(Y):
        labels = read_column(columns[0], named=frozenset(place) | divided)
        if not labels.present.all():
            raise ValueError("labels must not be missing in a single column of fine labels")
        truth = _places(labels.labels, place, tree.labels.classes)
        finest = [name not in divided or name in tree.hierarchy for name in labels.labels.tolist()]
        return truth, _some(np.array(finest, dtype=bool))
    coarse = read_column(columns[0], named=frozenset(tree.coarse_names))
    truth = np.full(len(coarse.present), _NONE, dtype=np.intp)
    is_known = np.zeros(len(truth), dtype=bool)
    is_known[coarse.present] = [name not in divided for name in coarse.labels.tolist()]
    truth[coarse.present] = _places(coarse.labels, place, tree.coarse_classes)
    if len(columns) == 2:
        fine = read_column(columns[1], named=frozenset(tree.hierarchy), fine=True)
        known = fine.labels if tree.fine is None else tree.fine.classes
        truth[fine.present] = _places(fine.labels, place, known)
        is_known |= fine.present
    return truth, _some(is_known)


def _some(is_known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    if not is_known.any():
        raise ValueError("score needs samples whose finest class is known; no fine label is given")
    return is_known


def _places(
    labels: npt.NDArray[Any], place: dict[Any, int], known: npt.NDArray[Any]
) -> npt.NDArray[np.intp]:
    kinds = ["strings" if array.dtype.kind == "U" else "numbers" for array in (labels, known)]
    if len(labels) and known.dtype != object and kinds[0] != kinds[1]:
        raise TypeError(f"labels must be {kinds[1]} like the known classes, got {kinds[0]}")
    return np.array([place.get(name, _NONE) for name in labels.tolist()], dtype=np.intp)
