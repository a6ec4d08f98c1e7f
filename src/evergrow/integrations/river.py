"""Evergrow's classifiers in river, and river's classifiers in scikit-learn.

river learns one example at a time, a dictionary of named features; scikit-learn learns matrices.
:class:`OnlineClassifier` and :class:`BatchClassifier` translate between the two. In both directions
classes may come at any time, and each feature has its column for good.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from evergrow.estimators.classifier.learner import (
    GrowingClassifier,
    check_targets,
    validate_examples,
    validate_rows,
)
from evergrow.estimators.means import NCMClassifier
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.extras import install_command
from evergrow.foundation.labels import ClassList, as_classes, check_label_types

try:
    from river import base
except ImportError as error:
    raise ImportError(
        f"evergrow.integrations.river needs river: {install_command('integrations', 'river')}"
    ) from error

if TYPE_CHECKING:
    import pandas as pd

Matrix = npt.NDArray[np.float64]


class OnlineClassifier(base.MiniBatchClassifier):
    """Use an Evergrow classifier in river, which learns from a stream of dictionaries.

    Each feature name gets a column. A feature that is missing in an example is 0. Before the first
    example, predictions are None and probabilities are empty.

    :meth:`learn_many` learns a batch in one update, which is much faster than one example at a
    time. Class means learn the same model either way. Forests do not, nor does least squares if it
    chooses its own penalty.

    Parameters
    ----------
    estimator : classifier
        A classifier of Evergrow that takes rows of numbers; it is cloned.
    n_features : int, default=None
        Maximum number of features. The estimator has a fixed number of columns. With None, it is
        the number of features of the first example or batch, and a feature that first appears later
        is an error. Set a higher number if new features may appear.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from evergrow import NCMClassifier
    >>> from evergrow.integrations.river import OnlineClassifier
    >>> model = OnlineClassifier(NCMClassifier(metric="mahalanobis"))
    >>> stream = datasets.Phishing().take(300)
    >>> evaluate.progressive_val_score(stream, model, metrics.Accuracy()).get() > 0.8
    True
    """

    def __init__(self, estimator: Any, n_features: int | None = None) -> None:
        if not isinstance(estimator, GrowingClassifier):
            raise InvalidTypeError(
                f"estimator must be a classifier of Evergrow, got {estimator!r}; "
                "river.compat converts those of scikit-learn"
            )
        if not get_tags(estimator).input_tags.two_d_array or not hasattr(estimator, "partial_fit"):
            raise InvalidTypeError(
                f"estimator must learn rows of numbers by partial_fit, which a "
                f"{type(estimator).__name__} does not"
            )
        is_number = isinstance(n_features, int) and not isinstance(n_features, bool)
        if n_features is not None and not (is_number and n_features > 0):
            raise InvalidInputError(
                f"n_features must be a positive integer or None, got {n_features!r}"
            )
        self.estimator = estimator
        self.n_features = n_features
        self._learner = clone(estimator)
        self._columns: dict[Any, int] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def _is_fitted(self) -> bool:
        return bool(self._learner.__sklearn_is_fitted__())

    def learn_one(self, x: dict[Any, Any], y: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Learn one example of a known or new class."""
        self._learn([x], [y])

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows of a table in one update."""
        self._learn(_records(X), np.asarray(y))

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:  # noqa: ARG002
        """Predict the class of one example; None before the first example is learnt."""
        return self._learner.predict(self._rows([x])).tolist()[0] if self._is_fitted else None

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Predict the class of each row of a table."""
        import pandas as pd

        if not self._is_fitted:
            return pd.Series([None] * len(X), index=X.index, dtype=object)
        return pd.Series(self._learner.predict(self._rows(_records(X))), index=X.index)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:  # noqa: ARG002
        """Predict the probability of each known class for one example."""
        if not self._is_fitted:
            return {}
        found = self._learner.predict_proba(self._rows([x]))[0]
        return dict(zip(self._learner.classes_.tolist(), found.tolist(), strict=True))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Predict the probability of each known class for each row of a table."""
        import pandas as pd

        if not self._is_fitted:
            return pd.DataFrame(index=X.index)
        found = self._learner.predict_proba(self._rows(_records(X)))
        return pd.DataFrame(found, index=X.index, columns=self._learner.classes_.tolist())

    def _learn(self, examples: list[dict[Any, Any]], labels: Any) -> None:
        columns = self._extended(examples)
        rows = _fill(examples, columns, self._width(columns))
        self._learner.partial_fit(rows, labels)
        # Last: a batch that is refused changes nothing.
        self._columns = columns

    def _rows(self, examples: list[dict[Any, Any]]) -> Matrix:
        """Return examples as rows, without features that no example had that was learnt."""
        return _fill(examples, self._columns, self._width(self._columns))

    def _width(self, columns: Mapping[Any, int]) -> int:
        return self.n_features or len(columns)

    def _extended(self, examples: list[dict[Any, Any]]) -> dict[Any, int]:
        """Return the columns of all features, with those of new ones."""
        new = {name for example in examples for name in example} - self._columns.keys()
        # By name, so that the order in an example does not matter.
        ordered = sorted(new, key=lambda name: (type(name).__name__, name))
        columns = self._columns | {
            name: column for column, name in enumerate(ordered, start=len(self._columns))
        }
        if self._is_fitted and new and self.n_features is None:
            raise InvalidInputError(
                f"the feature {ordered[0]!r} is new, but the model was trained with "
                f"{len(self._columns)} features: set n_features to the largest number there may be"
            )
        if not columns or len(columns) > self._width(columns):
            raise InvalidInputError(
                f"there are {len(columns)} features, but the model has room for {self.n_features}"
                if columns
                else "an example must have at least one feature"
            )
        return columns

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"estimator": NCMClassifier(), "n_features": 100}

    def _unit_test_skips(self) -> set[str]:
        """Name the checks of river that do not hold for these parameters."""
        many = "check_learn_many_matches_learn_one"
        # A feature that comes later is an error, which the second one gives too.
        skips = {"check_emerging_features", many} if self.n_features is None else set()
        return skips if isinstance(self.estimator, NCMClassifier) else skips | {many}


def _records(X: pd.DataFrame) -> list[dict[Any, Any]]:
    return cast("list[dict[Any, Any]]", X.to_dict("records"))


def _fill(examples: list[dict[Any, Any]], columns: Mapping[Any, int], width: int) -> Matrix:
    rows = np.zeros((len(examples), width))
    for row, example in zip(rows, examples, strict=True):
        for name, value in example.items():
            if name in columns:
                try:
                    row[columns[name]] = value
                except (TypeError, ValueError) as error:
                    raise InvalidTypeError(
                        f"the feature {name!r} must be a number, got {value!r}"
                    ) from error
    return rows


@dataclass(eq=False, repr=False)
class BatchClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Use a river classifier like one of scikit-learn.

    Rows are passed to river one by one, as dictionaries. In contrast to river's own adapter, new
    classes may come in any call of :meth:`partial_fit`, and features keep the names that they have
    in a table.

    Parameters
    ----------
    model : classifier of river
        The classifier. It is copied with what it has learnt; the original does not change.

    Attributes
    ----------
    model_ : classifier of river
        The trained classifier.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.

    Examples
    --------
    >>> from river import naive_bayes
    >>> from evergrow.integrations.river import BatchClassifier
    >>> model = BatchClassifier(naive_bayes.GaussianNB())
    >>> model = model.fit([[0.0], [1.0], [8.0], [9.0]], ["a", "a", "b", "b"])
    >>> model.partial_fit([[20.0], [21.0]], ["c", "c"]).predict([[0.5], [20.0]])
    array(['a', 'c'], dtype='<U1')
    """

    model: Any
    model_: Any = field(init=False)
    _labels: ClassList = field(init=False)

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Train a copy of the model on samples and their classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: an array or a table.
        y : array-like of shape (n_samples,)
            Classes: integers or strings.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        return self._start(X, y, None)

    def partial_fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None
    ) -> Self:
        """Add samples of known and new classes; the first call is like :meth:`fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples,)
            Classes, of the same kind (numbers or strings) as the known ones.
        classes : array-like, default=None
            Classes that get a column before their first sample.

        Returns
        -------
        self : estimator
            The updated estimator.
        """
        if not self.__sklearn_is_fitted__():
            return self._start(X, y, classes)
        check_label_types(y)
        rows, labels = validate_examples(self, X, y, reset=False)
        check_targets(labels)
        known, _ = self._labels.extend_with(labels, as_classes(classes))
        self._learn(self.model_, rows, labels)
        self._labels = known
        return self

    def _start(self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None) -> Self:
        # A pipeline of river is not an instance of river's Classifier.
        if not all(hasattr(self.model, name) for name in ("learn_one", "predict_proba_one")):
            raise InvalidTypeError(f"model must be a classifier of river, got {self.model!r}")
        check_label_types(y)
        rows, labels = validate_examples(self, X, y)
        check_targets(labels)
        known, _ = GrowingClassifier._first_labels(labels, classes)
        model = copy.deepcopy(self.model)
        self._learn(model, rows, labels)
        self.model_, self._labels = model, known
        return self

    def _learn(self, model: Any, rows: npt.NDArray[Any], labels: npt.NDArray[Any]) -> None:
        for example, label in zip(self._examples(rows), labels.tolist(), strict=True):
            model.learn_one(example, label)

    def _examples(self, rows: npt.NDArray[Any]) -> Iterator[dict[Any, float]]:
        names = getattr(self, "feature_names_in_", np.arange(rows.shape[1])).tolist()
        for row in rows:
            yield dict(zip(names, row.tolist(), strict=True))

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether the model is fitted."""
        return "model_" in vars(self)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, in the order of the columns of :meth:`predict_proba`."""
        check_is_fitted(self)
        return self._labels.classes

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Predict the class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Classes. If the model of river gives no class for some samples, an array of objects with
            None for them.
        """
        check_is_fitted(self)
        rows = validate_rows(self, X, reset=False)
        found = [self.model_.predict_one(example) for example in self._examples(rows)]
        # As text, None would equal a class with the name "None".
        unsure = any(label is None for label in found)
        return np.array(found, dtype=object if unsure else self._labels.classes.dtype)

    def predict_proba(self, X: npt.ArrayLike) -> Matrix:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``. If the model of river gives no
            probabilities for a sample, all are equal.
        """
        check_is_fitted(self)
        rows = validate_rows(self, X, reset=False)
        names = self.classes_.tolist()
        found = np.array(
            [
                [answer.get(name, 0.0) for name in names]
                for answer in map(self.model_.predict_proba_one, self._examples(rows))
            ]
        )
        total = found.sum(axis=1, keepdims=True)
        even = np.full_like(found, 1 / len(names))
        return cast("Matrix", np.divide(found, total, out=even, where=total > 0))
