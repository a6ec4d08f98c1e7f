"""What a forest has learnt, as one value that never changes.

A fitted estimator holds exactly one of these and replaces it whole, so a thread that predicts
while another trains sees the forest before or after, never between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.value.history import EarlySamples, History
from evergrow.estimators.forest.value.sample_matrix import SampleMatrix, check_file
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.labels import ClassList

# Bytes of probabilities held at once when only the best classes are wanted.
_PREDICT_BYTES = 16 << 20

# What two trees have together, and more after an update, is still a whole number of 64 bits.
_MOST_COMPARISONS = 1 << 53

_NODE_ROWS = ("row_begin", "row_size")


@dataclass(frozen=True, eq=False)
class FittedForest:
    """Classes, feature transform, training samples, trees and how they came about."""

    labels: ClassList
    standardization: Standardization
    forest: _core.Forest
    history: History
    proposer: str

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.standardization.mean)

    @property
    def has_training_rows(self) -> bool:
        """Whether the trees know their training rows; not so after an inference-only file."""
        return self.forest.keeps_rows

    @property
    def stored_ids(self) -> npt.NDArray[np.int64]:
        """Ids of the samples that are stored."""
        samples = self.forest.samples
        ids: npt.NDArray[np.int64] = samples.ids[samples.classes >= 0]
        return ids

    def check_memory(self) -> None:
        """Raise an ``OSError`` if the samples are in a file that is not as it was left."""
        check_file(self.forest.samples)

    def centroid(self, tree: int, node: int, index: int) -> npt.NDArray[np.float64]:
        """One class mean of a node, in the units of the input."""
        return self.standardization.undo(self.forest.centroid(tree, node, index))

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
        self, X: npt.NDArray[Any], n_threads: int, reading: _core.LeafReading | None = None
    ) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
        """Probabilities a block of rows at a time: (rows, block).

        ``reading`` says how leaves are read whose samples have coarse or fine classes.
        """
        scale = self.standardization.core
        for rows, block in self._blocks(X):
            yield rows, self.forest.predict_proba(block, scale, n_threads, reading)

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
        header, tensors = self.to_tensors()
        tensors["samples.rows"] = np.asarray(tensors["samples.rows"])
        return (FittedForest.from_tensors, (self.labels, header, tensors))

    def to_tensors(
        self, *, inference_only: bool = False
    ) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Everything but the classes: numbers for a header, and named arrays.

        Removed samples are left out. With ``inference_only`` the training rows are left out too,
        but for those that stand as a centroid somewhere.
        """
        if not inference_only:
            self.check_memory()
        samples = self.forest.samples
        trees = [self.forest.tree_arrays(t) for t in range(len(self.forest))]
        classes = samples.classes
        kept = _rows_used(trees, len(samples)) if inference_only else classes >= 0
        rows = np.flatnonzero(kept).astype(np.int32)
        if len(rows) < len(samples) or inference_only:
            number = (np.cumsum(kept) - 1).astype(np.int32)
            trees = [_renumbered(arrays, number, inference_only) for arrays in trees]
        tensors: dict[str, npt.NDArray[Any]] = {
            "mean": self.standardization.mean,
            "scale": self.standardization.scale,
            # Read when they are written: they may be more than fit into memory.
            "samples.rows": cast(npt.NDArray[Any], SampleMatrix(samples, rows)),
            "samples.classes": classes[rows],
            "samples.ids": samples.ids[rows],
            "n_comparisons": np.array(self.forest.n_comparisons, dtype=np.int64),
        }
        early = self.history.early
        if early is not None and not inference_only:
            tensors |= {"early.X": early.X, "early.codes": early.codes, "early.ids": early.ids}
        for t, arrays in enumerate(trees):
            width = samples.width
            halves = arrays["halves"].reshape(-1, width)[:, : self.n_features].view(np.float16)
            for name, array in {**arrays, "halves": halves}.items():
                tensors[f"tree.{t}.{name}"] = array
        return {"history": self.history.to_json(), "proposer": self.proposer}, tensors

    @classmethod
    def from_tensors(
        cls, labels: ClassList, header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]
    ) -> FittedForest:
        """Rebuild from :meth:`to_tensors`; a ``ModelFileError`` if the arrays do not fit."""
        try:
            return cls._build(labels, header, tensors)
        except KeyError as error:
            raise ModelFileError(f"the model file lacks the array {error}") from error
        except (ValueError, TypeError) as error:
            raise ModelFileError(f"the model file is inconsistent: {error}") from error

    @classmethod
    def _build(
        cls, labels: ClassList, header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]
    ) -> FittedForest:
        mean, scale = tensors["mean"], tensors["scale"]
        n_features = len(mean)
        _require(n_features > 0 and mean.dtype == scale.dtype == np.float64, "mean or scale")
        _require(mean.shape == scale.shape == (n_features,), "mean or scale")
        _require(bool(np.isfinite(mean).all() and np.isfinite(scale).all()), "mean or scale")
        _require(bool((scale > 0).all()), "scale")
        n_comparisons = tensors["n_comparisons"]
        _require(n_comparisons.dtype == np.int64 and n_comparisons.ndim == 1, "n_comparisons")
        _require(bool((n_comparisons >= 0).all()) and len(n_comparisons) > 0, "n_comparisons")
        _require(bool((n_comparisons < _MOST_COMPARISONS).all()), "n_comparisons")
        by_tree = _arrays_by_tree(tensors)
        _require(len(by_tree) == len(n_comparisons), "n_comparisons")
        samples = _read_samples(tensors, n_features, len(labels))
        trees = [_padded_tree(arrays, n_features, samples.width) for arrays in by_tree]
        proposer = str(header.get("proposer"))
        forest = _core.Forest.from_arrays(
            samples=samples,
            trees=trees,
            n_comparisons=n_comparisons.tolist(),
            proposer=proposer,
            n_classes=len(labels),
        )
        history = History.from_json(header.get("history"))
        early = _read_early(tensors, n_features, len(labels))
        # The next sample's id must be new, where samples are told apart by their ids.
        is_new = bool((samples.ids < history.n_seen).all())
        _require(is_new or not forest.keeps_rows, "samples.ids")
        if early is not None:
            _require(np.array_equal(np.sort(early.ids), np.sort(samples.ids)), "early.ids")
        history = history.with_early(early)
        return cls(labels, Standardization(mean, scale), forest, history, proposer)


def _read_samples(
    tensors: dict[str, npt.NDArray[Any]], n_features: int, n_classes: int
) -> _core.Samples:
    rows, classes, ids = (tensors[f"samples.{name}"] for name in ("rows", "classes", "ids"))
    _require(rows.dtype in (np.float32, np.float16), "samples.rows")
    _require(rows.ndim == 2 and rows.shape[1] == n_features, "samples.rows")
    _require(bool(np.isfinite(rows).all()), "samples.rows")
    _require(classes.dtype == np.int32 and classes.shape == (len(rows),), "samples.classes")
    _require(bool(((classes >= 0) & (classes < n_classes)).all()), "samples.classes")
    _require(ids.dtype == np.int64 and ids.shape == (len(rows),), "samples.ids")
    _require(bool((ids >= 0).all()) and len(np.unique(ids)) == len(ids), "samples.ids")
    samples = _core.Samples(n_features, half=rows.dtype == np.float16)
    numbers = samples.add(len(rows))
    plain = Standardization.identity(n_features).core
    for part, block in float_blocks(rows):
        samples.write(numbers[part], block, classes[part], ids[part], plain)
    return samples


def _read_early(
    tensors: dict[str, npt.NDArray[Any]], n_features: int, n_classes: int
) -> EarlySamples | None:
    if "early.X" not in tensors:
        return None
    X, codes, ids = (tensors[f"early.{name}"] for name in ("X", "codes", "ids"))
    _require(X.dtype == np.float64 and X.ndim == 2 and X.shape[1] == n_features, "early.X")
    _require(bool(np.isfinite(X).all()), "early.X")
    _require(codes.dtype == np.int32 and codes.shape == (len(X),), "early.codes")
    _require(bool(((codes >= 0) & (codes < n_classes)).all()), "early.codes")
    _require(ids.dtype == np.int64 and ids.shape == (len(X),), "early.ids")
    return EarlySamples(X, codes, ids)


def _require(condition: bool, name: str) -> None:
    if not condition:
        raise ValueError(f"the array {name} has the wrong type, shape or values")


def _rows_used(trees: list[dict[str, npt.NDArray[Any]]], n_samples: int) -> npt.NDArray[np.bool_]:
    used = np.zeros(n_samples, dtype=bool)
    for arrays in trees:
        source = arrays["centroid_source"]
        used[source[source >= 0]] = True
    return used


def _renumbered(
    arrays: dict[str, npt.NDArray[Any]], number: npt.NDArray[np.int32], without_rows: bool
) -> dict[str, npt.NDArray[Any]]:
    changed = dict(arrays)
    source = arrays["centroid_source"]
    # Means keep their (negative) slot; references follow their row to its new number.
    if len(number):
        changed["centroid_source"] = np.where(source >= 0, number[np.maximum(source, 0)], source)
    if without_rows:
        return {name: a for name, a in changed.items() if name not in ("rows", *_NODE_ROWS)}
    changed["rows"] = number[arrays["rows"]]
    return changed


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
