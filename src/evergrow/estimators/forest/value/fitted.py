"""A fitted forest as one immutable value.

An estimator holds exactly one of these and replaces it as a whole. A thread that predicts while
another one trains sees the forest before or after the change, never in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.value.history import History
from evergrow.estimators.forest.value.sample_matrix import check_file
from evergrow.estimators.forest.value.serialization import (
    forest_from_tensors,
    forest_to_tensors,
    read_early_samples,
    read_standardization,
    require,
)
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.labels import ClassList

# Bytes of probabilities held at once when only the best classes are wanted.
_PREDICT_BYTES = 16 << 20


@dataclass(frozen=True, eq=False)
class FittedForest:
    """Classes, feature scale, trees with their training samples, and history of a forest."""

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
        """Whether the training samples are stored; False after loading an inference-only file."""
        return self.forest.keeps_rows

    @property
    def stored_ids(self) -> npt.NDArray[np.int64]:
        """Ids of the samples that are stored."""
        samples = self.forest.samples
        return np.asarray(samples.ids[samples.classes >= 0])

    def check_memory(self) -> None:
        """Raise an ``OSError`` if the file of the samples was changed by another program."""
        check_file(self.forest.samples)

    def centroid(self, tree: int, node: int, index: int) -> npt.NDArray[np.float64]:
        """One class mean of a node, in the units of the input."""
        return self.standardization.undo(self.forest.centroid(tree, node, index))

    def _blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        max_rows = max(64, min(16384, _PREDICT_BYTES // (8 * len(self.labels))))
        return float_blocks(X, max_rows)

    def probabilities(self, X: npt.NDArray[Any], n_threads: int) -> npt.NDArray[np.float64]:
        """Mean class frequencies of the leaves [Ristin2014 Eq. 4]."""
        out = np.empty((X.shape[0], len(self.labels)))
        for rows, block in self.probability_blocks(X, n_threads):
            out[rows] = block
        return out

    def probability_blocks(
        self, X: npt.NDArray[Any], n_threads: int, reading: _core.LeafReading | None = None
    ) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
        """Probabilities of one block of rows at a time: (rows, block).

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
        """Number of distances computed to classify the rows, over all trees."""
        return sum(
            int(self.forest.comparisons(block, self.standardization.core, n_threads).sum())
            for _, block in self._blocks(X)
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedForest:
        """Share the value: it is immutable."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as plain arrays."""
        header, tensors = self.to_tensors()
        tensors["samples.rows"] = np.asarray(tensors["samples.rows"])
        return (FittedForest.from_tensors, (self.labels, header, tensors))

    def to_tensors(
        self, *, inference_only: bool = False
    ) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and named arrays of a model file, without the classes.

        Removed samples are left out. With ``inference_only`` all training samples are left out,
        except those that a node compares with.
        """
        if not inference_only:
            self.check_memory()
        tensors = {
            "mean": self.standardization.mean,
            "scale": self.standardization.scale,
            **forest_to_tensors(self.forest, inference_only=inference_only),
        }
        if not inference_only:
            tensors |= self.history.early.to_tensors()
        return {"history": self.history.to_json(), "proposer": self.proposer}, tensors

    @classmethod
    def from_tensors(
        cls, labels: ClassList, header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]
    ) -> FittedForest:
        """Rebuild from :meth:`to_tensors`; a ``ModelFileError`` if the arrays are inconsistent."""
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
        standardization = read_standardization(tensors)
        n_features = len(standardization.mean)
        proposer = str(header.get("proposer"))
        forest = forest_from_tensors(tensors, n_features, len(labels), proposer)
        history = History.from_json(header.get("history"))
        early = read_early_samples(tensors, n_features, len(labels))
        ids = forest.samples.ids
        # The id of the next sample must be a new one.
        is_new = bool((ids < history.n_seen).all())
        require(is_new or not forest.keeps_rows, "samples.ids")
        if len(early):
            require(np.array_equal(np.sort(early.ids), np.sort(ids)), "early.ids")
        return cls(labels, standardization, forest, replace(history, early=early), proposer)
