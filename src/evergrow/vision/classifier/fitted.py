"""What an image classifier has learnt, as one immutable value, and what it answers and reports."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import GrowingClassifier
from evergrow.foundation.errors import BadImage, InvalidInputError
from evergrow.foundation.labels import ClassList, as_classes
from evergrow.foundation.params import Satisfies
from evergrow.storage.models.codec import (
    MOST_COUNTED,
    Array,
    ClassNames,
    Fields,
    Model,
    Nested,
)
from evergrow.vision.classifier.fingerprints import NO_FINGERPRINTS, Codes, Fingerprints

_TRANSFORMS = Satisfies("a transformer", lambda value: hasattr(value, "transform"))
_GROWS = Satisfies(
    "a classifier that can be updated",
    lambda value: isinstance(value, GrowingClassifier) and hasattr(value, "partial_fit"),
)


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

    _stored: ClassVar[Fields] = {
        "values": Array((np.float32, np.float64), ("examples", None)),
        "codes": Array(np.int32, ("examples",), 0, "classes"),
    }

    def stored_fields(self) -> dict[str, Any]:
        """Return all blocks as one."""
        values, codes = (np.concatenate(parts) for parts in zip(*self.blocks, strict=True))
        return {"values": values, "codes": codes}

    @classmethod
    def from_stored(cls, fields: dict[str, Any]) -> ExampleRows:
        """Rebuild from a model file."""
        return cls(((fields["values"], fields["codes"]),))

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

    _stored: ClassVar[Fields] = {
        "labels": ClassNames(),
        "features": Model(_TRANSFORMS),
        "learner": Model(_GROWS),
        "counts": Array(np.int64, ("classes",), 0, total=MOST_COUNTED),
        "rows": Nested(ExampleRows, optional=True),
        "fingerprints": Nested(Fingerprints),
    }

    def check_stored(self) -> None:
        """Raise a ``ValueError`` if the parts do not suit each other."""
        n_classes = len(self.labels)
        if self.learner.classes_.tolist() != self.labels.classes.tolist():
            raise InvalidInputError("the learner has other classes")
        if (np.bincount(self.fingerprints.codes, minlength=n_classes) > self.counts).any():
            raise InvalidInputError("a class has more known images than images")
        if self.rows is None:
            return
        values, codes = self.rows.blocks[0]
        if not needs_rows(self.learner) or values.shape[1] != self.n_features:
            raise InvalidInputError("its examples are not those that its learner needs")
        if not np.array_equal(np.bincount(codes, minlength=n_classes), self.counts):
            raise InvalidInputError("its examples do not match its counts")

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


def needs_rows(learner: Any) -> bool:
    """Whether a learner needs the examples of a class to forget it.

    Such learners take the examples as ``X`` and ``y``; forests store them themselves.
    """
    while hasattr(learner, "estimator"):
        learner = learner.estimator
    return "X" in inspect.signature(learner.forget).parameters
