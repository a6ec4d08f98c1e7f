"""What is asked of the wrapped estimator, and what is said where it cannot do that."""

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
from evergrow.foundation.labels import ClassList
from evergrow.storage.shards import choose_rows

__all__ = ["IsClassifier", "Lesson", "accepts", "forget", "renamed", "taught"]


@dataclass(frozen=True)
class IsClassifier:
    """An estimator that learns and predicts."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        wanted = ("fit", "predict", "get_params")
        if isinstance(value, type) or not all(hasattr(value, name) for name in wanted):
            return False
        return bool(is_classifier(value)) and bool(get_tags(value).target_tags.single_output)

    def __str__(self) -> str:
        """Say what is allowed."""
        return "a classifier with fit and predict that learns one label of each sample"


@dataclass(frozen=True, eq=False)
class Lesson:
    """Rows, their labels and weights, and classes that a caller lists beside them."""

    X: npt.NDArray[Any]
    y: npt.NDArray[Any]
    weights: npt.NDArray[np.float64] | None = None
    classes: npt.NDArray[Any] | None = None

    def where(self, places: npt.NDArray[np.bool_]) -> Lesson:
        """The part of it at some places."""
        weights = None if self.weights is None else self.weights[places]
        return Lesson(choose_rows(self.X, places), self.y[places], weights, self.classes)


def accepts(estimator: Any, method: str, name: str) -> bool:
    """Whether a method of the estimator takes an argument of this name."""
    return name in inspect.signature(getattr(estimator, method)).parameters


def _adapted(estimator: Any, like: Any) -> Any:
    """A copy of the estimator with the parameters that another one has now."""
    if type(estimator) is not type(like):
        raise ValueError(
            f"estimator is a {type(like).__name__} but the model was trained with a "
            f"{type(estimator).__name__}: fit again to change it"
        )
    learner, wanted = copy.deepcopy(estimator), clone(like).get_params(deep=False)
    old = learner.get_params(deep=False)
    # A generator that has drawn goes on from where it is.
    generator = np.random.RandomState
    new = {
        name: value
        for name, value in wanted.items()
        if not (isinstance(value, generator) and isinstance(old[name], generator))
    }
    return learner.set_params(**new)


def taught(estimator: Any, like: Any, method: str, lesson: Lesson, labels: ClassList) -> Any:
    """A copy of the estimator that has learnt more; it then knows exactly these classes.

    It first takes the parameters of ``like``.
    """
    options: dict[str, Any] = {}
    if lesson.weights is not None:
        _check_accepts(estimator, method, "sample_weight")
        options["sample_weight"] = lesson.weights
    if lesson.classes is not None:
        _check_accepts(estimator, method, "classes")
        options["classes"] = lesson.classes
    learner = _adapted(estimator, like)
    if not len(lesson.X):
        if estimator.classes_.tolist() != labels.classes.tolist():
            raise ValueError(
                "all examples of this call were held out, so that the estimator does not learn of "
                "the classes listed: give one more example"
            )
        # Parameters take effect, and are checked, where something is learnt.
        return estimator
    before = set(getattr(estimator, "classes_", np.zeros(0)).tolist())
    try:
        getattr(learner, method)(lesson.X, lesson.y, **options)
    except ValueError as error:
        grows = isinstance(estimator, GrowingClassifier)
        if grows or not before or before.issuperset(labels.classes.tolist()):
            raise
        raise ValueError(f"{_cannot_grow(estimator)}; it said: {error}") from error
    # Some take labels they do not know for examples of no class, without a word.
    if learner.classes_.tolist() != labels.classes.tolist():
        raise ValueError(_cannot_grow(estimator))
    return learner


def forget(estimator: Any, like: Any, lesson: Lesson | None, classes: list[Any]) -> Any:
    """A copy of the estimator without some examples or classes.

    It first takes the parameters of ``like``.
    """
    name = type(estimator).__name__
    if not hasattr(estimator, "forget"):
        raise TypeError(f"{name} cannot forget: it has no method forget")
    learner = _adapted(estimator, like)
    if (lesson is None or not len(lesson.X)) and not classes:
        return estimator
    if lesson is not None and len(lesson.X):
        if not (accepts(estimator, "forget", "X") and accepts(estimator, "forget", "y")):
            raise TypeError(f"{name} cannot forget examples given as X and y, only classes")
        options = {}
        if lesson.weights is not None:
            _check_accepts(estimator, "forget", "sample_weight")
            options["sample_weight"] = lesson.weights
        learner.forget(lesson.X, lesson.y, **options)
    if classes:
        _check_accepts(estimator, "forget", "classes")
        learner.forget(classes=classes)
    return learner


def renamed(estimator: Any, names: Any) -> Any:
    """A copy of the estimator with other names for its classes."""
    if not hasattr(estimator, "rename_classes"):
        raise TypeError(
            f"{type(estimator).__name__} cannot rename classes: it has no method rename_classes"
        )
    learner = copy.deepcopy(estimator)
    learner.rename_classes(names)
    return learner


def _check_accepts(estimator: Any, method: str, name: str) -> None:
    if not accepts(estimator, method, name):
        raise TypeError(f"{method} of {type(estimator).__name__} does not take {name}")


def _cannot_grow(estimator: Any) -> str:
    return (
        f"{type(estimator).__name__} cannot learn a class that it was not told at its first call: "
        "list all in classes then, or wrap an estimator whose classes grow"
    )
