"""A learnt metric for class means, as a scikit-learn transformer [Mensink2013]."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from evergrow.estimators.classifier.documentation import DocLinkMixin
from evergrow.estimators.classifier.learner import (
    check_targets,
    frozen_copy,
    replace_fitted,
    validate_examples,
    validate_rows,
)
from evergrow.estimators.classifier.persistence import Header, ModelContent, SaveMixin, Tensors
from evergrow.estimators.means.metric_learning import LARGEST, FittedMetric, learn_metric
from evergrow.estimators.subcategory.label_tree import UNKNOWN, LabelTree
from evergrow.estimators.subcategory.labels import check_labels
from evergrow.estimators.sums.accumulation import check_magnitude, check_weights
from evergrow.foundation.device import (
    Device,
    find_device,
    guard_memory,
    import_torch,
    place_like,
)
from evergrow.foundation.engine import Arrays, current_engine
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList, check_label_types
from evergrow.foundation.locks import exclusive
from evergrow.foundation.params import (
    Choice,
    Flag,
    Integer,
    Nothing,
    Number,
    RandomState,
    Rule,
    check_parameters,
)
from evergrow.foundation.rows import float_blocks
from evergrow.storage.device_rows import DeviceRows, device_blocks
from evergrow.storage.models.codec import decode, encode
from evergrow.storage.models.header import (
    Build,
    check_saveable,
    common_header,
    feature_names,
    parameters_of,
    plain_parameters,
)
from evergrow.storage.shards import choose_rows
from evergrow.storage.shards.parts import RowPart, row_parts, run_and_stack

Floats = npt.NDArray[np.float64]

# More components add time but hardly any accuracy, whatever the number of features.
_MOST_COMPONENTS = 512


@dataclass(eq=False, repr=False)
class NCMMetric(
    SaveMixin,
    DocLinkMixin,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Learn a linear projection that brings examples near the mean of their class.

    Use it as ``NCMClassifier(metric=NCMMetric())``, or in a pipeline before any other estimator. A
    metric that is learnt from few classes suits later classes less well.

    The projection maximises the likelihood of the true classes. The probability of a class is
    proportional to ``exp(-d^2 / 2)``, where ``d`` is the distance from its mean after the
    projection (NCMML, [Mensink2013]). Learning starts from Fisher's discriminants and takes
    mini-batch steps until the likelihood of held-out examples stops improving.

    Parameters
    ----------
    n_components : int, default=None
        Number of dimensions after the projection. None uses the number of features, but at most
        512. Fewer are faster and a little less accurate.
    shrinkage : float, default=0.5
        How much the covariance within classes, from which learning starts, is shrunk towards its
        diagonal: above 0 and up to 1. Use more for few examples of many features.
    learning_rate : float, default=0.01
        Length of the first steps, relative to the entries of the projection. It is halved after
        every epoch without improvement. Lower values are slower and rarely better.
    batch_size : int, default=256
        Number of examples per step.
    max_iter : int, default=100
        Maximum number of epochs, which are passes through the examples.
    tol : float, default=1e-3
        Smallest gain in mean log-likelihood of the held-out examples that counts as improvement.
    n_iter_no_change : int, default=3
        Number of epochs in a row without improvement after which learning stops.
    validation_fraction : float, default=0.1
        Share of the examples that are held out to decide when to stop, from 0 to 0.5. With 0, or
        with too few examples, the training examples decide instead, and learning stops later.
    level : {"fine", "coarse"} or None, default=None
        Which level of labels to learn from, if labels have a coarse and a fine level, as those of
        :class:`SubcategoryForestClassifier`. ``"fine"`` learns from the examples with a fine class
        and gives the better metric unless they are too few; a coarse class without fine ones counts
        as a fine class. ``"coarse"`` learns from all. With more levels, these are the finest and
        the coarsest. With None, each example has one class.
    random_state : int, RandomState or None, default=None
        Seed of the order of the examples and of the held-out sample.
    verbose : int, default=0
        Show a progress bar if positive.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The projection.
    n_iter_ : int
        Number of epochs.
    log_likelihoods_ : ndarray of shape (n_iterations,)
        Mean log-likelihood of the held-out examples after each epoch; the projection is that of
        the best epoch.
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

    Before a forest for coarse and fine classes:

    >>> from sklearn.pipeline import make_pipeline
    >>> from evergrow import SubcategoryForestClassifier
    >>> X = [[0, 0], [0, 9], [1, 0], [1, 9], [7, 1], [7, 8]]
    >>> Y = [["a", "a1"], ["a", "a1"], ["a", "a2"], ["a", "a2"], ["b", None], ["b", None]]
    >>> metric = NCMMetric(1, level="fine", random_state=0)
    >>> forest = SubcategoryForestClassifier(5, min_samples_leaf=1, random_state=0)
    >>> make_pipeline(metric, forest).fit(X, Y).predict([[0, 5], [7, 5]])
    array(['a1', 'b'], dtype='<U2')
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
        "level": [Nothing(), Choice(("fine", "coarse"))],
        "random_state": [Nothing(), RandomState()],
        "verbose": [Integer(0), Flag()],
    }

    n_components: int | None = None
    _: KW_ONLY
    shrinkage: float = 0.5
    learning_rate: float = 0.01
    batch_size: int = 256
    max_iter: int = 100
    tol: float = 1e-3
    n_iter_no_change: int = 3
    validation_fraction: float = 0.1
    level: Literal["fine", "coarse"] | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    components_: Floats = field(init=False)
    log_likelihoods_: Floats = field(init=False)

    @exclusive
    def fit(
        self,
        X: npt.ArrayLike,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        hierarchy: Any = None,
    ) -> Self:
        """Learn the projection from examples and their classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features. Learning keeps a copy of them in single precision, also of
            :class:`evergrow.Shards`, because it reads them many times in random order. If the copy
            is too large for memory, learn from some rows: ``shards.choose(rows)``.
        y : array-like of shape (n_samples,), with `level` also (n_samples, n_levels)
            Classes: integers or strings. With `level`, as in
            :meth:`SubcategoryForestClassifier.fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples in class means, gradient and likelihood; None gives each a
            weight of 1. Examples of weight 0 are ignored.
        hierarchy : mapping, default=None
            The coarse class of each fine class. Only with `level`: it is needed for flat lists with
            fine classes.

        Returns
        -------
        self : estimator
            The fitted estimator. If learning fails or is interrupted, it is unchanged.

        Examples
        --------
        >>> from evergrow import NCMMetric
        >>> X = [[0, 0], [0, 9], [1, 0], [1, 9]]
        >>> W = NCMMetric(1, random_state=0).fit(X, ["a", "a", "b", "b"]).components_
        >>> bool(abs(W[0, 0]) > abs(W[0, 1]))
        True
        """
        check_parameters({name: getattr(self, name) for name in self._rules}, self._rules)
        # Validation sets attributes of the estimator it is given, so it gets a clone.
        learner = clone(self)
        if self.level is None:
            if hierarchy is not None:
                raise InvalidInputError("hierarchy is only for level='fine' and level='coarse'")
            check_label_types(y)
            checked, labels = validate_examples(learner, X, y)
            check_targets(labels)
            checked, labels, weights = check_weights(checked, labels, sample_weight)
        else:
            checked = validate_rows(learner, X, ensure_min_samples=2)
            labels = self._classes_of_level(checked, y, hierarchy)
            checked, labels, weights = check_weights(checked, labels, sample_weight)
            used = labels != UNKNOWN
            if not used.any():
                raise InvalidInputError("all examples with a fine class have a weight of 0")
            checked, labels, weights = choose_rows(checked, used), labels[used], weights[used]
        device = find_device(checked)
        if isinstance(checked, DeviceRows):
            checked.check_magnitude(LARGEST)
        else:
            check_magnitude(checked)
        _, codes = ClassList.of(labels)
        random = check_random_state(self.random_state)
        n_components = learner._n_components(checked.shape[1])
        with guard_memory(device, "learn from fewer rows, or with evergrow.device('cpu')"):
            fitted = learn_metric(checked, codes, weights, learner, n_components, random, device)
        self._set_fitted(fitted, getattr(learner, "feature_names_in_", None))
        return self

    def _classes_of_level(
        self, X: npt.NDArray[Any], y: Any, hierarchy: Any
    ) -> npt.NDArray[np.int32]:
        """Number of the class of each example on the level; -1 for examples without one."""
        empty = LabelTree.empty()
        tree, classes = empty.grow(check_labels(self, X, y, hierarchy, empty))
        if self.level == "coarse":
            return tree.tops[classes]
        if len(tree.levels) < 2:
            raise InvalidInputError(
                "level='fine' needs fine labels, but all are missing: give two columns, coarse and "
                "fine, or hierarchy={fine: coarse}, or use level='coarse'"
            )
        return np.where(tree.is_finest[classes], classes, UNKNOWN)

    def _n_components(self, n_features: int) -> int:
        if self.n_components is None:
            return min(n_features, _MOST_COMPONENTS)
        if self.n_components > n_features:
            raise InvalidInputError(
                f"n_components must be at most the number of features, {n_features}, "
                f"got {self.n_components}"
            )
        return int(self.n_components)

    def _set_fitted(self, fitted: FittedMetric, names: npt.NDArray[Any] | None) -> None:
        # Copies of classifiers share these arrays.
        for array in (fitted.components, fitted.log_likelihoods):
            array.setflags(write=False)
        replace_fitted(
            self,
            {
                "components_": fitted.components,
                "log_likelihoods_": fitted.log_likelihoods,
                "n_iter_": len(fitted.log_likelihoods),
                "n_features_in_": fitted.components.shape[1],
                "feature_names_in_": names,
            },
        )

    def transform(self, X: npt.ArrayLike) -> Any:
        """Project examples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        projected : ndarray of shape (n_samples, n_components)
            ``X @ components_.T``; a tensor on the GPU if ``X`` is one.

        Examples
        --------
        >>> from evergrow import NCMMetric
        >>> metric = NCMMetric(1, random_state=0).fit([[0, 0], [0, 9], [1, 0]], [0, 0, 1])
        >>> metric.transform([[1, 1], [2, 2]]).shape
        (2, 1)
        """
        reader = frozen_copy(self)
        check_is_fitted(reader, "components_")
        checked: Any = validate_rows(reader, X, reset=False)
        device = find_device(checked)
        if device is not None:
            return _project_on(device, checked, reader.components_)
        found = _project(checked, reader.components_)
        return place_like(found, checked.tensor) if isinstance(checked, DeviceRows) else found

    def _to_file(self) -> ModelContent:
        reader = frozen_copy(self)
        check_is_fitted(reader, "components_")
        # A file with invalid parameters could not be loaded.
        check_parameters({name: getattr(reader, name) for name in self._rules}, self._rules)
        check_saveable(type(self))
        fitted, tensors = encode(FittedMetric(reader.components_, reader.log_likelihoods_))
        parameters = plain_parameters(reader.get_params(deep=False))
        return {**common_header(reader, parameters), "fitted": fitted}, tensors

    @classmethod
    def _from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """Return a metric with parameters from a file; a ``ValueError`` if one is not valid."""
        metric = cls(**parameters)
        check_parameters({name: getattr(metric, name) for name in cls._rules}, cls._rules)
        return metric

    @classmethod
    def _from_file(cls, header: Header, tensors: Tensors, build: Build) -> Self:  # noqa: ARG003
        metric = cls._from_parameters(parameters_of(header))
        fitted = decode(FittedMetric, header.get("fitted"), tensors)
        metric._set_fitted(fitted, feature_names(header, fitted.components.shape[1]))
        return metric

    @property
    def _n_features_out(self) -> int:
        """Number of output features, which scikit-learn names by number."""
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that ``fit`` needs classes."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = self.level is None
        tags.target_tags.two_d_labels = self.level is not None
        return tags


def _project(X: npt.NDArray[Any], components: Floats) -> Floats:
    """Return ``X @ components.T``, a block of rows at a time, by the engine in use if any."""
    engine = current_engine()
    parts = [] if engine is None else row_parts(X)
    if engine is not None and len(parts) > 1:
        return run_and_stack(engine, parts, project_part, X, (components,), what="projecting")
    return _project_blocks(X, components)


def _project_on(device: Device, X: Any, components: Floats) -> Any:
    """Return ``X @ components.T``, computed on a device; a tensor if the rows are one."""
    torch = import_torch()
    with guard_memory(device, "project fewer rows at a time"):
        weights = device.tensor(components).T
        where = str(X.tensor.device) if isinstance(X, DeviceRows) else "cpu"
        found = torch.empty((X.shape[0], len(components)), dtype=torch.float64, device=where)
        for rows, block in device_blocks(X, device, torch.float64):
            found[rows] = block @ weights
    return found if isinstance(X, DeviceRows) else found.numpy()


def project_part(part: RowPart, matrix: npt.NDArray[Any] | None, components: Floats) -> Arrays:
    """Project some rows."""
    return {"rows": _project_blocks(part.read(matrix), components)}


def _project_blocks(X: npt.NDArray[Any], components: Floats) -> Floats:
    found = np.empty((X.shape[0], len(components)))
    for rows, block in float_blocks(X):
        found[rows] = block @ components.T
    return found
