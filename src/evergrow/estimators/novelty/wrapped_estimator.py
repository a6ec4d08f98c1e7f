"""Training of the wrapped estimator, and errors where it lacks a feature."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from evergrow.estimators.classifier.learner import GrowingClassifier
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.labels import ClassList
from evergrow.storage.shards import choose_rows


def can_be_wrapped(value: object) -> bool:
    """Whether a value is a classifier with one label per sample."""
    wanted = ("fit", "predict", "get_params")
    if isinstance(value, type) or not all(hasattr(value, name) for name in wanted):
        return False
    return bool(is_classifier(value)) and bool(get_tags(value).target_tags.single_output)


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """Rows with labels and weights, and the classes that the caller lists."""

    X: npt.NDArray[Any]
    y: npt.NDArray[Any]
    weights: npt.NDArray[np.float64] | None = None
    classes: npt.NDArray[Any] | None = None

    def where(self, places: npt.NDArray[np.bool_]) -> LabelledBatch:
        """Return the examples at some places."""
        weights = None if self.weights is None else self.weights[places]
        return LabelledBatch(choose_rows(self.X, places), self.y[places], weights, self.classes)


def accepts(estimator: Any, method: str, name: str) -> bool:
    """Whether a method of the estimator has a parameter of this name."""
    return name in inspect.signature(getattr(estimator, method)).parameters


def _copy_with_parameters(estimator: Any, like: Any) -> Any:
    """Copy the estimator with the parameters of another one."""
    if type(estimator) is not type(like):
        raise InvalidInputError(
            f"estimator is {type(like).__name__} but the model was trained with "
            f"{type(estimator).__name__}: fit again to change it"
        )
    learner, wanted = copy.deepcopy(estimator), clone(like).get_params(deep=False)
    old = learner.get_params(deep=False)
    # A random generator keeps its state.
    generator = np.random.RandomState
    new = {
        name: value
        for name, value in wanted.items()
        if not (isinstance(value, generator) and isinstance(old[name], generator))
    }
    return learner.set_params(**new)


def train(estimator: Any, like: Any, method: str, batch: LabelledBatch, labels: ClassList) -> Any:
    """Train a copy of the estimator, with the parameters of ``like``.

    Afterwards it must know exactly the classes ``labels``.
    """
    options: dict[str, Any] = {}
    if batch.weights is not None:
        _check_accepts(estimator, method, "sample_weight")
        options["sample_weight"] = batch.weights
    if batch.classes is not None:
        _check_accepts(estimator, method, "classes")
        options["classes"] = batch.classes
    learner = _copy_with_parameters(estimator, like)
    if not len(batch.X):
        if estimator.classes_.tolist() != labels.classes.tolist():
            raise InvalidInputError(
                "all examples of this call were held out, so the estimator cannot learn the listed "
                "classes: pass one more example"
            )
        # New parameters take effect, and are checked, when something is learnt.
        return estimator
    before = set(getattr(estimator, "classes_", np.zeros(0)).tolist())
    try:
        getattr(learner, method)(batch.X, batch.y, **options)
    except ValueError as error:
        grows = isinstance(estimator, GrowingClassifier)
        if grows or not before or before.issuperset(labels.classes.tolist()):
            raise
        raise InvalidInputError(f"{_cannot_grow(estimator)}; its error: {error}") from error
    # Some estimators silently ignore labels that they do not know.
    if learner.classes_.tolist() != labels.classes.tolist():
        raise InvalidInputError(_cannot_grow(estimator))
    return learner


def forget(estimator: Any, like: Any, batch: LabelledBatch | None, classes: list[Any]) -> Any:
    """Make a copy of the estimator forget examples or classes, with the parameters of ``like``."""
    name = type(estimator).__name__
    if not hasattr(estimator, "forget"):
        raise InvalidTypeError(f"{name} cannot forget: it has no method forget")
    learner = _copy_with_parameters(estimator, like)
    if (batch is None or not len(batch.X)) and not classes:
        return estimator
    if batch is not None and len(batch.X):
        if not (accepts(estimator, "forget", "X") and accepts(estimator, "forget", "y")):
            raise InvalidTypeError(f"{name} cannot forget examples given as X and y, only classes")
        options = {}
        if batch.weights is not None:
            _check_accepts(estimator, "forget", "sample_weight")
            options["sample_weight"] = batch.weights
        learner.forget(batch.X, batch.y, **options)
    if classes:
        _check_accepts(estimator, "forget", "classes")
        learner.forget(classes=classes)
    return learner


def rename(estimator: Any, names: Any) -> Any:
    """Rename classes of a copy of the estimator."""
    if not hasattr(estimator, "rename_classes"):
        raise InvalidTypeError(
            f"{type(estimator).__name__} cannot rename classes: it has no method rename_classes"
        )
    learner = copy.deepcopy(estimator)
    learner.rename_classes(names)
    return learner


def _check_accepts(estimator: Any, method: str, name: str) -> None:
    if not accepts(estimator, method, name):
        raise InvalidTypeError(f"{method} of {type(estimator).__name__} does not accept {name}")


def _cannot_grow(estimator: Any) -> str:
    return (
        f"{type(estimator).__name__} cannot learn new classes after its first call: list all "
        "classes in the first call, or wrap an estimator whose classes grow"
    )
