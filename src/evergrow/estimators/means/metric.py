"""A learnt metric for class means as a scikit-learn transformer."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from evergrow.estimators.classifier.learner import (
    check_targets,
    checked_examples,
    checked_rows,
    snapshot,
    swap_learnt,
)
from evergrow.estimators.means.learning import FittedMetric, Plan, learn_metric
from evergrow.estimators.means.projecting import projected
from evergrow.estimators.sums.examples import check_size, weighted
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.labels import ClassList, check_label_types
from evergrow.foundation.params import (
    Flag,
    Integer,
    Nothing,
    Number,
    RandomState,
    Rule,
    check_parameters,
)
from evergrow.foundation.turns import one_at_a_time
from evergrow.storage.files import write_model
from evergrow.storage.modelfile import (
    Build,
    check_array,
    check_saveable,
    common_header,
    feature_names,
    parameters_of,
    plain_parameters,
)

__all__ = ["NCMMetric"]

# More components than this cost more than they add, whatever the number of features.
_MOST_COMPONENTS = 512
# Features are at most as large, so that what is projected stays finite.
_LARGEST = 1e140


class NCMMetric(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """A linear projection in which examples lie near the mean of their class.

    It maximises the likelihood of the true classes when a class is as probable as
    ``exp(-d^2 / 2)``, ``d`` being the distance from its mean after the projection (NCMML of Mensink
    et al., 2013). Learning starts from Fisher's discriminants and goes by mini-batches until
    examples held out gain no more.

    Use it as ``NCMClassifier(metric=NCMMetric())`` or in a pipeline before any other estimator. A
    metric knows the classes it was learnt from: learnt from few, it serves later ones less well.

    Parameters
    ----------
    n_components : int, default=None
        Dimensions after the projection; None for as many as there are features, at most 512. Fewer
        make later work faster at a small loss.
    shrinkage : float, default=0.5
        How far the covariance within the classes, from which learning starts, takes features for
        independent, up to 1. More for few examples of many features.
    learning_rate : float, default=0.01
        Length of the first steps, relative to the projection's own entries. It is halved whenever
        an epoch gains too little. Lower is slower and rarely better.
    batch_size : int, default=256
        Examples per step.
    max_iter : int, default=100
        Most epochs: passes through the examples.
    tol : float, default=1e-3
        Gain in mean log-likelihood of the held-out examples that counts as one.
    n_iter_no_change : int, default=3
        Epochs in a row without such a gain after which learning stops.
    validation_fraction : float, default=0.1
        Share of the examples that is held out to tell when to stop. With 0, or with too few
        examples to hold one out, the examples that are learnt from tell, which stops later.
    random_state : int, RandomState or None, default=None
        Seed of the order of the examples and of the choice of those held out.
    verbose : int, default=0
        Show a progress bar when positive.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The projection.
    n_iter_ : int
        Number of epochs.
    log_likelihoods_ : ndarray of shape (n_iterations,)
        Mean log-likelihood of the held-out examples after each epoch; the projection is that of
        the best.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from evergrow import NCMMetric
    >>> X, y = load_digits(return_X_y=True)
    >>> metric = NCMMetric(10, random_state=0).fit(X, y)
    >>> metric.transform(X).shape
    (1797, 10)
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n_components": [Nothing(), Integer(1, 1 << 20)],
        "shrinkage": [Number(0.0, 1.0, open_low=True)],
        "learning_rate": [Number(0.0, 1e6, open_low=True)],
        "batch_size": [Integer(1, 1 << 28)],
        "max_iter": [Integer(1, 1 << 30)],
        "tol": [Number(0.0)],
        "n_iter_no_change": [Integer(1, 1 << 30)],
        "validation_fraction": [Number(0.0, 0.5)],
        "random_state": [Nothing(), RandomState()],
        "verbose": [Integer(0), Flag()],
    }

    components_: npt.NDArray[np.float64]
    log_likelihoods_: npt.NDArray[np.float64]

    def __init__(
        self,
        n_components: int | None = None,
        *,
        shrinkage: float = 0.5,
        learning_rate: float = 0.01,
        batch_size: int = 256,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_iter_no_change: int = 3,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    @one_at_a_time
    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn the projection from examples and their classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features. Learning goes through them many times and in random order, so it holds a copy
            in single precision, also of :class:`evergrow.Shards`: for more than memory has room
            for, learn from a choice of rows, ``shards.choose(rows)``.
        y : array-like of shape (n_samples,)
            Classes: integers or strings.
        sample_weight : array-like of shape (n_samples,), default=None
            What each example counts, in class means, gradient and likelihood; None for 1. Examples
            of weight 0 are as good as absent.

        Returns
        -------
        self : estimator
            The fitted estimator. If learning fails or is interrupted it stays as it was.

        Examples
        --------
        >>> from evergrow import NCMMetric
        >>> X = [[0, 0], [0, 9], [1, 0], [1, 9]]
        >>> W = NCMMetric(1, random_state=0).fit(X, ["a", "a", "b", "b"]).components_
        >>> bool(abs(W[0, 0]) > abs(W[0, 1]))
        True
        """
        check_parameters({name: getattr(self, name) for name in self._rules}, self._rules)
        check_label_types(y)
        # Validation writes on the estimator it is given: not on this one before all went well.
        learner = clone(self)
        checked, labels = checked_examples(learner, X, y)
        check_targets(labels)
        checked, labels, weights = weighted(checked, labels, sample_weight)
        check_size(checked)
        _, codes = ClassList.of(labels)
        random = check_random_state(self.random_state)
        fitted = learn_metric(checked, codes, weights, self._plan(checked.shape[1]), random)
        self._become(fitted, getattr(learner, "feature_names_in_", None))
        return self

    def _plan(self, n_features: int) -> Plan:
        n_components = self.n_components
        if n_components is None:
            n_components = min(n_features, _MOST_COMPONENTS)
        elif n_components > n_features:
            raise ValueError(
                f"n_components must be at most the number of features, {n_features}, "
                f"got {n_components}"
            )
        return Plan(
            n_components=int(n_components),
            shrinkage=float(self.shrinkage),
            learning_rate=float(self.learning_rate),
            batch_size=int(self.batch_size),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            validation_fraction=float(self.validation_fraction),
            n_iter_no_change=int(self.n_iter_no_change),
            verbose=int(self.verbose),
        )

    def _become(self, fitted: FittedMetric, names: npt.NDArray[Any] | None) -> None:
        # Classifiers that were copied share them.
        for array in (fitted.components, fitted.log_likelihoods):
            array.setflags(write=False)
        swap_learnt(
            self,
            {
                "components_": fitted.components,
                "log_likelihoods_": fitted.log_likelihoods,
                "n_iter_": len(fitted.log_likelihoods),
                "n_features_in_": fitted.components.shape[1],
                "feature_names_in_": names,
            },
        )

    def _snapshot(self) -> Self:
        return snapshot(self)

    def transform(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Project examples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.

        Returns
        -------
        projected : ndarray of shape (n_samples, n_components)
            ``X @ components_.T``.

        Examples
        --------
        >>> from evergrow import NCMMetric
        >>> metric = NCMMetric(1, random_state=0).fit([[0, 0], [0, 9], [1, 0]], [0, 0, 1])
        >>> metric.transform([[1, 1], [2, 2]]).shape
        (2, 1)
        """
        reader = self._snapshot()
        check_is_fitted(reader, "components_")
        checked = checked_rows(reader, X, reset=False)
        return projected(checked, reader.components_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the metric to a file that :func:`evergrow.load` reads.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced whole or not at all.

        Examples
        --------
        >>> import evergrow, tempfile, os
        >>> metric = evergrow.NCMMetric(1, random_state=0).fit([[0, 0], [0, 9], [1, 0]], [0, 0, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     metric.save(os.path.join(folder, "metric.evergrow"))
        ...     evergrow.load(os.path.join(folder, "metric.evergrow")).n_features_in_
        2
        """
        header, tensors = self._to_file()
        write_model(path, header, tensors)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays, for a file of its own or inside that of a classifier."""
        reader = self._snapshot()
        check_is_fitted(reader, "components_")
        # Else the file could not be loaded.
        check_parameters({name: getattr(reader, name) for name in self._rules}, self._rules)
        check_saveable(type(self))
        header = common_header(reader, plain_parameters(reader.get_params(deep=False)), None)
        tensors = {"components": reader.components_, "log_likelihoods": reader.log_likelihoods_}
        return header, tensors

    @classmethod
    def _from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """A metric with parameters from a file; a ``ValueError`` if one is not allowed."""
        check_parameters({**cls().get_params(), **parameters}, cls._rules)
        return cls(**parameters)

    @classmethod
    def _from_file(
        cls,
        header: dict[str, Any],
        tensors: dict[str, npt.NDArray[Any]],
        build: Build,  # noqa: ARG003
    ) -> Self:
        metric = cls._from_parameters(parameters_of(header))
        shape = (None, None)
        components = check_array(tensors.get("components"), "components", np.float64, shape)
        found = tensors.get("log_likelihoods")
        likelihoods = check_array(found, "log_likelihoods", np.float64, (None,))
        if not components.size or not likelihoods.size:
            raise ModelFileError("the model file is inconsistent: its metric is empty")
        if np.abs(components).max() > _LARGEST:
            raise ModelFileError("the model file is inconsistent: its metric is too large")
        metric._become(
            FittedMetric(components, likelihoods), feature_names(header, components.shape[1])
        )
        return metric

    @property
    def _n_features_out(self) -> int:
        """For scikit-learn, which names the output by number."""
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that it learns from classes."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
