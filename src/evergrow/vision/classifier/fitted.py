"""What a classifier of images has learnt, as one value that never changes."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import GrowingClassifier
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.labels import ClassList, as_classes
from evergrow.storage.modelfile import check_array, class_list, leave_out_machine
from evergrow.storage.pipelines import from_file, to_file
from evergrow.vision.classifier.report import ImageReport
from evergrow.vision.classifier.rows import Rows

__all__ = ["FittedImages", "needs_rows"]

Tensors = dict[str, npt.NDArray[Any]]

_FEATURES = "features/"
_LEARNER = "learner/"


@dataclass(frozen=True, eq=False)
class FittedImages:
    """Fitted features, the learner behind them, and what was learnt from.

    The learner is never changed here: who teaches it teaches a copy, and copies of Evergrow's own
    estimators share what never changes.
    """

    features: Any
    learner: Any
    labels: ClassList
    counts: npt.NDArray[np.int64]
    rows: Rows | None
    report: ImageReport | None = None

    @property
    def n_features(self) -> int:
        """Number of features that the learner takes."""
        return int(self.learner.n_features_in_)

    @classmethod
    def first(
        cls, features: Any, learner: Any, lesson: tuple[npt.NDArray[Any], Any], *, keep: bool
    ) -> FittedImages:
        """Learn from a first matrix and its labels."""
        matrix, y = lesson
        learner.fit(matrix, y)
        labels, codes = ClassList.of(y)
        counts = np.bincount(codes, minlength=len(labels)).astype(np.int64)
        rows = Rows().extend(matrix, codes) if keep and needs_rows(learner) else None
        return cls(features, learner, labels, counts, rows)

    def taught(
        self, matrix: npt.NDArray[Any], y: npt.NDArray[Any], settle: Callable[[Any], Any]
    ) -> FittedImages:
        """With more examples, of known and of new classes; ``settle`` prepares the learner."""
        learner = settle(copy.deepcopy(self.learner)).partial_fit(matrix, y)
        labels, codes = self.labels.extend(y)
        counts = np.bincount(codes, minlength=len(labels)).astype(np.int64)
        counts[: len(self.counts)] += self.counts
        rows = None if self.rows is None else self.rows.extend(matrix, codes)
        return FittedImages(self.features, learner, labels, counts, rows)

    def without(self, classes: npt.ArrayLike) -> FittedImages:
        """Without some classes."""
        gone = sorted(set(self.labels.columns_of(as_classes(classes).tolist())))
        if not gone:
            raise ValueError("forget needs at least one class")
        if len(gone) == len(self.labels):
            raise ValueError("forget would leave no class: train a new model instead")
        learner, names = copy.deepcopy(self.learner), self.labels.classes[gone]
        if self.rows is None:
            learner.forget(classes=names)
        else:
            values, codes = self.rows.of(gone)
            learner.forget(values, self.labels.classes[codes], classes=names)
        labels, columns = self.labels.without(gone)
        rows = None if self.rows is None else self.rows.relabel(columns)
        return FittedImages(self.features, learner, labels, np.delete(self.counts, gone), rows)

    def renamed(self, names: Mapping[Any, Any]) -> FittedImages:
        """With other names for classes; those that get one name become one."""
        labels, columns = self.labels.renamed(names)
        learner = copy.deepcopy(self.learner).rename_classes(names)
        counts = np.zeros(len(labels), dtype=np.int64)
        np.add.at(counts, columns, self.counts)
        rows = None if self.rows is None else self.rows.relabel(columns)
        return FittedImages(self.features, learner, labels, counts, rows)

    def to_file(self) -> tuple[dict[str, Any], Tensors]:
        """Entries of a header and arrays; those of features and learner among them."""
        features, feature_arrays = to_file(self.features)
        learner, learner_arrays = to_file(self.learner)
        tensors = {"image_counts": self.counts}
        tensors |= {_FEATURES + name: array for name, array in feature_arrays.items()}
        tensors |= {_LEARNER + name: array for name, array in learner_arrays.items()}
        if self.rows is not None:
            tensors |= self.rows.to_tensors()
        header = {"features": leave_out_machine(features), "learner": leave_out_machine(learner)}
        return header, tensors

    @classmethod
    def from_file(cls, header: dict[str, Any], tensors: Tensors, build: Any) -> FittedImages:
        """Rebuild from :meth:`to_file`; a ``ModelFileError`` if anything does not fit."""
        labels = class_list(header)
        header = leave_out_machine(header)
        features = from_file(header.get("features"), tensors, build, _FEATURES)
        if not hasattr(features, "transform"):
            raise ModelFileError("the features inside the model file cannot transform")
        learner = from_file(header.get("learner"), tensors, build, _LEARNER)
        if not isinstance(learner, GrowingClassifier) or not hasattr(learner, "partial_fit"):
            raise ModelFileError("the learner inside the model file is no growing classifier")
        if learner.classes_.tolist() != labels.classes.tolist():
            raise ModelFileError("the model file is inconsistent: the learner has its own classes")
        shape = (len(labels),)
        counts = check_array(tensors.get("image_counts"), "image_counts", np.int64, shape)
        if (counts < 0).any():
            raise ModelFileError("the model file is inconsistent: it counts less than no images")
        rows = Rows.from_tensors(tensors, int(learner.n_features_in_), counts)
        if rows is not None and not needs_rows(learner):
            raise ModelFileError("the model file is inconsistent: its learner has its own examples")
        return cls(features, learner, labels, counts, rows)


def needs_rows(learner: Any) -> bool:
    """Whether a learner may need the examples of a class to forget it.

    Those that can forget examples take them as X and y; forests have kept them.
    """
    while hasattr(learner, "estimator"):
        learner = learner.estimator
    return "X" in inspect.signature(learner.forget).parameters
