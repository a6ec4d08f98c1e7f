"""What an image classifier has learnt, as one immutable value, and what it answers and reports."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import GrowingClassifier
from evergrow.foundation.errors import BadImage, InvalidInputError, ModelFileError
from evergrow.foundation.labels import ClassList, as_classes
from evergrow.storage.models.header import (
    Tensors,
    check_array,
    class_list,
    reset_machine_parameters,
)
from evergrow.storage.models.pipelines import from_file, to_file
from evergrow.vision.classifier.fingerprints import NO_FINGERPRINTS, Codes, Fingerprints

_FEATURES = "features/"
_LEARNER = "learner/"


@dataclass(frozen=True, eq=False)
class Answers:
    """Result of :meth:`ImageClassifier.answer`: predictions, and images that could not be read.

    Attributes
    ----------
    labels : ndarray of shape (n_answers,)
        The predicted class of each image that could be read, as from ``predict``.
    known : ndarray of shape (n_answers,)
        False for images that fit no class, if the learner is a :class:`RejectingClassifier`. Their
        label is its unknown label.
    top_labels : ndarray of shape (n_answers, k)
        The most probable classes, best first.
    top_probabilities : ndarray of shape (n_answers, k)
        The probabilities of these classes.
    kept : ndarray of shape (n_answers,)
        The index of each answered image in the input.
    problems : tuple of BadImage
        The images that could not be read, and why.
    """

    labels: npt.NDArray[Any]
    known: npt.NDArray[np.bool_]
    top_labels: npt.NDArray[Any]
    top_probabilities: npt.NDArray[np.float64]
    kept: npt.NDArray[np.int64]
    problems: tuple[BadImage, ...]


@dataclass(frozen=True)
class ImageReport:
    """Statistics of one call of ``fit`` or ``partial_fit`` of an :class:`ImageClassifier`.

    Attributes
    ----------
    n_images : int
        Number of training images.
    seconds_features : float
        Time to read the images and compute their features, including learning visual words.
    seconds_learning : float
        Time to train the learner.
    problems : tuple of BadImage
        Images and files that were skipped, and why.
    n_known_images : int
        Number of images that ``partial_fit(skip_known=True)`` skipped because their class already
        has them.
    n_copies : int
        Number of training images that are copies of others of the call in the same class. Each of
        them counts.

    Examples
    --------
    >>> from evergrow.vision import ImageReport
    >>> ImageReport(n_images=200, seconds_features=2.5, seconds_learning=0.1).problems
    ()
    """

    n_images: int
    seconds_features: float
    seconds_learning: float
    problems: tuple[BadImage, ...] = ()
    n_known_images: int = 0
    n_copies: int = 0


@dataclass(frozen=True, eq=False)
class ExampleRows:
    """The features of all training images and their class columns, for forgetting.

    One block per call: joining them at every call would copy all earlier examples.
    """

    blocks: tuple[tuple[npt.NDArray[Any], Codes], ...] = ()

    def extend(self, values: npt.NDArray[Any], codes: Codes) -> ExampleRows:
        """Append examples."""
        return ExampleRows((*self.blocks, (values, codes)))

    def select(self, columns: list[int]) -> tuple[npt.NDArray[Any], Codes]:
        """All examples of some classes."""
        chosen = [(values, codes, np.isin(codes, columns)) for values, codes in self.blocks]
        return (
            np.concatenate([values[mask] for values, _, mask in chosen]),
            np.concatenate([codes[mask] for _, codes, mask in chosen]),
        )

    def relabel(self, columns: list[int]) -> ExampleRows:
        """Class ``k`` becomes class ``columns[k]``; -1 removes it."""
        new_codes = np.array(columns, dtype=np.int32)
        changed = [(values, new_codes[codes]) for values, codes in self.blocks]
        left = [(values[codes >= 0], codes[codes >= 0]) for values, codes in changed]
        return ExampleRows(tuple((values, codes) for values, codes in left if len(codes)))

    def to_tensors(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of a model file."""
        return {
            "rows.values": np.concatenate([values for values, _ in self.blocks]),
            "rows.codes": np.concatenate([codes for _, codes in self.blocks]),
        }

    @classmethod
    def from_tensors(
        cls, tensors: dict[str, npt.NDArray[Any]], n_features: int, counts: npt.NDArray[np.int64]
    ) -> ExampleRows | None:
        """Rebuild; None if the file has none. There must be one row per counted image."""
        found = tensors.get("rows.values")
        if found is None:
            return None
        kind = np.float32 if found.dtype == np.float32 else np.float64
        values = check_array(found, "rows.values", kind, (None, n_features))
        codes = check_array(tensors.get("rows.codes"), "rows.codes", np.int32, (len(values),))
        if (codes < 0).any() or (codes >= len(counts)).any():
            raise ModelFileError("the model file is inconsistent: an example has no class")
        if not np.array_equal(np.bincount(codes, minlength=len(counts)), counts):
            raise ModelFileError("the model file is inconsistent: its examples do not match counts")
        return cls(((values, codes),))


@dataclass(frozen=True, eq=False)
class FittedImages:
    """Fitted features, the fitted learner, and statistics of the training images.

    The learner is never modified: updates train a deep copy, and copies of Evergrow's estimators
    share everything that is immutable.
    """

    features: Any
    learner: Any
    labels: ClassList
    counts: npt.NDArray[np.int64]
    rows: ExampleRows | None
    fingerprints: Fingerprints = NO_FINGERPRINTS
    report: ImageReport | None = None

    @property
    def n_features(self) -> int:
        """Number of features of the learner."""
        return int(self.learner.n_features_in_)

    @classmethod
    def train(
        cls,
        features: Any,
        learner: Any,
        matrix: npt.NDArray[Any],
        y: Any,
        digests: Sequence[bytes | None],
        *,
        keep: bool,
    ) -> FittedImages:
        """Train an unfitted learner; ``keep`` stores the rows if it needs them to forget."""
        learner.fit(matrix, y)
        labels, codes = ClassList.of(y)
        counts = np.bincount(codes, minlength=len(labels)).astype(np.int64)
        rows = ExampleRows().extend(matrix, codes) if keep and needs_rows(learner) else None
        return cls(features, learner, labels, counts, rows, Fingerprints.of(digests, codes))

    def update(
        self,
        matrix: npt.NDArray[Any],
        y: npt.NDArray[Any],
        digests: Sequence[bytes | None],
        prepare: Callable[[Any], Any],
    ) -> FittedImages:
        """Add examples of known and new classes; ``prepare`` sets options of the learner."""
        learner = prepare(copy.deepcopy(self.learner)).partial_fit(matrix, y)
        labels, codes = self.labels.extend(y)
        counts = np.bincount(codes, minlength=len(labels)).astype(np.int64)
        counts[: len(self.counts)] += self.counts
        rows = None if self.rows is None else self.rows.extend(matrix, codes)
        known = self.fingerprints.extend(digests, codes)
        return FittedImages(self.features, learner, labels, counts, rows, known)

    def forget(self, classes: npt.ArrayLike) -> FittedImages:
        """Remove classes."""
        gone = sorted(set(self.labels.columns_of(as_classes(classes).tolist())))
        if not gone:
            raise InvalidInputError("forget needs at least one class")
        if len(gone) == len(self.labels):
            raise InvalidInputError("forget would leave no class: train a new model instead")
        learner, names = copy.deepcopy(self.learner), self.labels.classes[gone]
        if self.rows is None:
            learner.forget(classes=names)
        else:
            values, codes = self.rows.select(gone)
            learner.forget(values, self.labels.classes[codes], classes=names)
        labels, columns = self.labels.without(gone)
        return self._with_columns(learner, labels, np.delete(self.counts, gone), columns)

    def rename(self, names: Mapping[Any, Any]) -> FittedImages:
        """Rename classes; classes that get the same name are merged."""
        labels, columns = self.labels.renamed(names)
        learner = copy.deepcopy(self.learner).rename_classes(names)
        counts = np.zeros(len(labels), dtype=np.int64)
        np.add.at(counts, columns, self.counts)
        return self._with_columns(learner, labels, counts, columns)

    def _with_columns(
        self, learner: Any, labels: ClassList, counts: npt.NDArray[np.int64], columns: list[int]
    ) -> FittedImages:
        """With another learner, for which class ``k`` is class ``columns[k]``, or is gone if -1."""
        rows = None if self.rows is None else self.rows.relabel(columns)
        known = self.fingerprints.relabel(columns)
        return FittedImages(self.features, learner, labels, counts, rows, known)

    def to_file(self) -> tuple[dict[str, Any], Tensors]:
        """Header entries and arrays of a model file, including those of features and learner."""
        features, feature_arrays = to_file(self.features)
        learner, learner_arrays = to_file(self.learner)
        tensors = {"image_counts": self.counts, **self.fingerprints.to_tensors()}
        tensors |= {_FEATURES + name: array for name, array in feature_arrays.items()}
        tensors |= {_LEARNER + name: array for name, array in learner_arrays.items()}
        if self.rows is not None:
            tensors |= self.rows.to_tensors()
        header = {
            "features": reset_machine_parameters(features),
            "learner": reset_machine_parameters(learner),
        }
        return header, tensors

    @classmethod
    def from_file(cls, header: dict[str, Any], tensors: Tensors, build: Any) -> FittedImages:
        """Rebuild from :meth:`to_file`; a ``ModelFileError`` if anything is inconsistent."""
        labels = class_list(header)
        header = reset_machine_parameters(header)
        features = from_file(header.get("features"), tensors, build, _FEATURES)
        if not hasattr(features, "transform"):
            raise ModelFileError("the features inside the model file have no transform")
        learner = from_file(header.get("learner"), tensors, build, _LEARNER)
        if not isinstance(learner, GrowingClassifier) or not hasattr(learner, "partial_fit"):
            raise ModelFileError("the learner inside the model file cannot be updated")
        if learner.classes_.tolist() != labels.classes.tolist():
            raise ModelFileError("the model file is inconsistent: the learner has other classes")
        shape = (len(labels),)
        counts = check_array(tensors.get("image_counts"), "image_counts", np.int64, shape)
        if (counts < 0).any():
            raise ModelFileError("the model file is inconsistent: an image count is negative")
        rows = ExampleRows.from_tensors(tensors, int(learner.n_features_in_), counts)
        if rows is not None and not needs_rows(learner):
            raise ModelFileError("the model file is inconsistent: its learner needs no examples")
        known = Fingerprints.from_tensors(tensors, counts)
        return cls(features, learner, labels, counts, rows, known)


def needs_rows(learner: Any) -> bool:
    """Whether a learner needs the examples of a class to forget it.

    Such learners take the examples as ``X`` and ``y``; forests store them themselves.
    """
    while hasattr(learner, "estimator"):
        learner = learner.estimator
    return "X" in inspect.signature(learner.forget).parameters
