"""What a forest has learnt, as one value that never changes.

A fitted estimator holds exactly one of these and replaces it whole, so a thread that predicts
while another trains sees the forest before or after, never between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.blocks import float_blocks
from evergrow.errors import ModelFileError
from evergrow.forest.standardize import Standardization
from evergrow.labels import ClassList

__all__ = ["FittedForest"]

# Bytes of probabilities held at once when only the best classes are wanted.
_PREDICT_BYTES = 16 << 20

_NODE_ROWS = ("row_begin", "row_size")


@dataclass(frozen=True, eq=False)
class FittedForest:
    """Classes, feature transform, training samples and trees."""

    labels: ClassList
    standardization: Standardization
    forest: _core.Forest

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.standardization.mean)

    @property
    def has_training_rows(self) -> bool:
        """Whether the trees know their training rows; not so after an inference-only file."""
        return len(self.forest.tree_arrays(0)["rows"]) > 0

    def centroid(self, tree: int, index: int) -> npt.NDArray[np.float64]:
        """One class mean of a tree, in the units of the input."""
        return self.standardization.undo(self.forest.centroid(tree, index))

    def _blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        max_rows = max(64, min(16384, _PREDICT_BYTES // (8 * len(self.labels))))
        return float_blocks(X, max_rows)

    def probabilities(self, X: npt.NDArray[Any], n_threads: int) -> npt.NDArray[np.float64]:
        """Mean class frequencies of the leaves, Eq. (4) of Ristin 2014."""
        out = np.empty((X.shape[0], len(self.labels)))
        for rows, block in self.probability_blocks(X, n_threads):
            out[rows] = block
        return out

    def probability_blocks(
        self, X: npt.NDArray[Any], n_threads: int
    ) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
        """Probabilities a block of rows at a time: (rows, block)."""
        for rows, block in self._blocks(X):
            yield rows, self.forest.predict_proba(block, self.standardization.core, n_threads)

    def leaves(self, X: npt.NDArray[Any], n_threads: int) -> npt.NDArray[np.int32]:
        """Leaf of every row in every tree."""
        blocks = [
            self.forest.apply(block, self.standardization.core, n_threads)
            for _, block in self._blocks(X)
        ]
        return np.concatenate(blocks)

    def comparisons(self, X: npt.NDArray[Any], n_threads: int) -> int:
        """Distances computed to classify the rows, over all trees."""
        return sum(
            int(self.forest.comparisons(block, self.standardization.core, n_threads).sum())
            for _, block in self._blocks(X)
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedForest:
        """Share: nothing in here ever changes."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as plain arrays."""
        tensors = {name: np.array(array) for name, array in self.to_tensors().items()}
        return (FittedForest.from_tensors, (self.labels, tensors))

    def to_tensors(self, *, inference_only: bool = False) -> dict[str, npt.NDArray[Any]]:
        """Everything but the classes as named arrays, views where possible.

        With ``inference_only`` the training rows are left out, but for those that stand as a
        centroid somewhere.
        """
        samples = self.forest.samples
        trees = [self.forest.tree_arrays(t) for t in range(len(self.forest))]
        rows, classes = samples.rows[:, : self.n_features], samples.classes
        if inference_only:
            used = _rows_used(trees, len(samples))
            number = np.cumsum(used, dtype=np.int32) - 1
            trees = [_without_rows(arrays, number) for arrays in trees]
            rows, classes = rows[used], classes[used]
        tensors: dict[str, npt.NDArray[Any]] = {
            "mean": self.standardization.mean,
            "scale": self.standardization.scale,
            "samples.rows": rows,
            "samples.classes": classes,
            "n_comparisons": np.array(self.forest.n_comparisons, dtype=np.int64),
        }
        width = samples.rows.shape[1]
        for t, arrays in enumerate(trees):
            halves = arrays["halves"].reshape(-1, width)[:, : self.n_features].view(np.float16)
            for name, array in {**arrays, "halves": halves}.items():
                tensors[f"tree.{t}.{name}"] = array
        return tensors

    @classmethod
    def from_tensors(cls, labels: ClassList, tensors: dict[str, npt.NDArray[Any]]) -> FittedForest:
        """Rebuild from :meth:`to_tensors`; a ``ModelFileError`` if the arrays do not fit."""
        try:
            return cls._build(labels, tensors)
        except KeyError as error:
            raise ModelFileError(f"the model file lacks the array {error}") from error
        except (ValueError, TypeError) as error:
            raise ModelFileError(f"the model file is inconsistent: {error}") from error

    @classmethod
    def _build(cls, labels: ClassList, tensors: dict[str, npt.NDArray[Any]]) -> FittedForest:
        mean, scale = tensors["mean"], tensors["scale"]
        rows, classes = tensors["samples.rows"], tensors["samples.classes"]
        n_comparisons = tensors["n_comparisons"]
        n_features = len(mean)
        _require(n_features > 0 and mean.dtype == scale.dtype == np.float64, "mean or scale")
        _require(mean.shape == scale.shape == (n_features,), "mean or scale")
        _require(bool(np.isfinite(mean).all() and np.isfinite(scale).all()), "mean or scale")
        _require(bool((scale > 0).all()), "scale")
        _require(rows.dtype == np.float32 and rows.ndim == 2, "samples.rows")
        _require(rows.shape == (len(classes), n_features), "samples.rows")
        _require(bool(np.isfinite(rows).all()), "samples.rows")
        _require(classes.dtype == np.int32 and classes.ndim == 1, "samples.classes")
        _require(bool(((classes >= 0) & (classes < len(labels))).all()), "samples.classes")
        _require(n_comparisons.dtype == np.int64 and n_comparisons.ndim == 1, "n_comparisons")
        _require(bool((n_comparisons >= 0).all()) and len(n_comparisons) > 0, "n_comparisons")
        by_tree = _arrays_by_tree(tensors)
        _require(len(by_tree) == len(n_comparisons), "n_comparisons")
        samples = _core.Samples(n_features, len(classes))
        plain = Standardization.identity(n_features).core
        samples.append(np.ascontiguousarray(rows), np.ascontiguousarray(classes), plain)
        width = samples.rows.shape[1]
        trees = [_padded_tree(arrays, n_features, width) for arrays in by_tree]
        forest = _core.Forest.from_arrays(
            samples=samples,
            trees=trees,
            n_comparisons=n_comparisons.tolist(),
            n_classes=len(labels),
        )
        return cls(labels, Standardization(mean, scale), forest)


def _require(condition: bool, name: str) -> None:
    if not condition:
        raise ValueError(f"the array {name} has the wrong type, shape or values")


def _rows_used(trees: list[dict[str, npt.NDArray[Any]]], n_samples: int) -> npt.NDArray[np.bool_]:
    used = np.zeros(n_samples, dtype=bool)
    for arrays in trees:
        source = arrays["centroid_source"]
        used[source[source >= 0]] = True
    return used


def _without_rows(
    arrays: dict[str, npt.NDArray[Any]], number: npt.NDArray[np.int32]
) -> dict[str, npt.NDArray[Any]]:
    kept = {name: a for name, a in arrays.items() if name not in ("rows", *_NODE_ROWS)}
    source = arrays["centroid_source"]
    # Means keep their (negative) slot; references follow their row to its new number.
    kept["centroid_source"] = np.where(source >= 0, number[np.maximum(source, 0)], source)
    return kept


def _arrays_by_tree(tensors: dict[str, npt.NDArray[Any]]) -> list[dict[str, npt.NDArray[Any]]]:
    trees: dict[str, dict[str, npt.NDArray[Any]]] = {}
    for key, array in tensors.items():
        group, _, rest = key.partition(".")
        if group == "tree":
            tree, _, name = rest.partition(".")
            trees.setdefault(tree, {})[name] = array
    return [trees[str(t)] for t in range(len(trees))]


def _padded_tree(
    arrays: dict[str, npt.NDArray[Any]], n_features: int, width: int
) -> dict[str, npt.NDArray[Any]]:
    halves = arrays["halves"]
    if halves.dtype != np.float16 or halves.ndim != 2 or halves.shape[1] != n_features:
        raise ValueError("the array halves has the wrong type or shape")
    _require(bool(np.isfinite(halves).all()), "halves")
    padded = np.zeros((halves.shape[0], width), dtype=np.float16)
    padded[:, :n_features] = halves
    arrays["halves"] = padded.view(np.uint16).reshape(-1)
    if "rows" not in arrays:
        arrays["rows"] = np.zeros(0, dtype=np.int32)
        arrays.update({name: np.zeros(len(arrays["left"]), np.int32) for name in _NODE_ROWS})
    return arrays
