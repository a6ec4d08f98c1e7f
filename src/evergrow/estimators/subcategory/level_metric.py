"""A metric trained on one level of two-level labels, for pipelines."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from evergrow.estimators.classifier.documentation import DocLinkMixin
from evergrow.estimators.classifier.learner import frozen_copy, replace_fitted, validate_rows
from evergrow.estimators.classifier.persistence import Header, ModelContent, SaveMixin, Tensors
from evergrow.estimators.means import NCMMetric
from evergrow.estimators.subcategory.labels.hierarchy import CodedLabels, LabelTree
from evergrow.estimators.subcategory.labels.sample_labels import check_labels
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError, ModelFileError
from evergrow.foundation.locks import exclusive
from evergrow.foundation.params import Choice, Nothing, Rule, Satisfies, check_parameters
from evergrow.storage.models.header import (
    Build,
    arrays_inside,
    check_saveable,
    common_header,
    feature_names,
    parameters_of,
)
from evergrow.storage.shards import choose_rows

Classes = npt.NDArray[np.int32]

_PREFIX = "metric/"


def _is_transformer(value: object) -> bool:
    wanted = ("fit", "transform", "get_feature_names_out")
    return not isinstance(value, type) and all(hasattr(value, name) for name in wanted)


def _coarse_classes(
    tree: LabelTree,  # noqa: ARG001
    labels: CodedLabels,
) -> tuple[Classes, npt.NDArray[np.bool_]]:
    return labels.coarse, np.ones(len(labels.coarse), dtype=bool)


def _finest_classes(tree: LabelTree, labels: CodedLabels) -> tuple[Classes, npt.NDArray[np.bool_]]:
    if tree.fine is None:
        raise InvalidInputError(
            "level='fine' needs fine labels, but all are missing: give two columns, coarse and "
            "fine, or hierarchy={fine: coarse}, or use level='coarse'"
        )
    return labels.finest, tree.is_finest[labels.finest]


# For each level: a function for the class of each sample, and which samples have one.
_LEVELS: dict[str, Any] = {"fine": _finest_classes, "coarse": _coarse_classes}


@dataclass(eq=False, repr=False)
class LevelMetric(
    SaveMixin,
    DocLinkMixin,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Learn a metric from one level of labels that have a coarse and a fine level.

    A metric such as :class:`NCMMetric` takes one class per sample. This wrapper passes it the fine
    classes of the samples that have one, or the coarse classes of all samples. Put it before a
    :class:`SubcategoryForestClassifier` in a pipeline that is fitted to labels with both levels.

    Parameters
    ----------
    metric : transformer, default=None
        Transformer that learns from features and classes; it is cloned. None is ``NCMMetric()``.
    level : {"fine", "coarse"}, default="fine"
        Level to learn from. Fine classes give the better metric unless too few samples have one. A
        coarse class without fine ones counts as a fine class. With more levels, ``"fine"`` is the
        finest and ``"coarse"`` the coarsest.

    Attributes
    ----------
    metric_ : transformer
        The fitted metric.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from evergrow import NCMMetric, SubcategoryForestClassifier
    >>> from evergrow.estimators import LevelMetric
    >>> X = [[0, 0], [0, 9], [1, 0], [1, 9], [7, 1], [7, 8]]
    >>> Y = [["a", "a1"], ["a", "a1"], ["a", "a2"], ["a", "a2"], ["b", None], ["b", None]]
    >>> metric = LevelMetric(NCMMetric(1, random_state=0))
    >>> forest = SubcategoryForestClassifier(5, min_samples_leaf=1, random_state=0)
    >>> make_pipeline(metric, forest).fit(X, Y).predict([[0, 5], [7, 5]])
    array(['a1', 'b'], dtype='<U2')
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "metric": [Nothing(), Satisfies("a transformer such as NCMMetric()", _is_transformer)],
        "level": [Choice(tuple(_LEVELS))],
    }

    metric: Any = None
    _: KW_ONLY
    level: Literal["fine", "coarse"] = "fine"

    metric_: Any = field(init=False)

    @exclusive
    def fit(self, X: npt.ArrayLike, y: Any, hierarchy: Any = None) -> Self:
        """Learn the metric from samples and their classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples, n_levels), (n_samples, 1) or (n_samples,)
            Classes, as in :meth:`SubcategoryForestClassifier.fit`.
        hierarchy : mapping, default=None
            The coarse class of each fine class. Needed for flat lists with fine classes.

        Returns
        -------
        self : estimator
            The fitted estimator. If learning fails or is interrupted, it is unchanged.
        """
        check_parameters({name: getattr(self, name) for name in self._rules}, self._rules)
        learner = clone(self)
        checked = validate_rows(learner, X, ensure_min_samples=2)
        empty = LabelTree.empty()
        tree, labels = empty.grow(check_labels(self, checked, y, hierarchy, empty))
        classes, used = _LEVELS[self.level](tree, labels)
        metric = NCMMetric() if self.metric is None else clone(self.metric)
        metric.fit(choose_rows(checked, used), classes[used])
        self._set_fitted(metric, checked.shape[1], getattr(learner, "feature_names_in_", None))
        return self

    def _set_fitted(self, metric: Any, n_features: int, names: npt.NDArray[Any] | None) -> None:
        learnt = {"metric_": metric, "n_features_in_": n_features, "feature_names_in_": names}
        replace_fitted(self, learnt)

    def transform(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Transform samples by the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        transformed : ndarray of shape (n_samples, n_components)
            Transformed features.
        """
        reader = frozen_copy(self)
        check_is_fitted(reader, "metric_")
        checked = validate_rows(reader, X, reset=False)
        return cast(npt.NDArray[np.float64], reader.metric_.transform(checked))

    def _to_file(self) -> ModelContent:
        reader = frozen_copy(self)
        check_is_fitted(reader, "metric_")
        check_parameters({"level": reader.level}, {"level": self._rules["level"]})
        check_saveable(type(self))
        if not isinstance(reader.metric_, NCMMetric):
            raise InvalidTypeError(
                f"a LevelMetric with metric={type(reader.metric_).__name__} cannot be saved, "
                "only one with an NCMMetric"
            )
        check_saveable(type(reader.metric_))
        inside, tensors = reader.metric_._to_file()
        header = common_header(reader, {"level": reader.level}, None)
        return {**header, "metric": inside}, {f"{_PREFIX}{k}": v for k, v in tensors.items()}

    @classmethod
    def _from_file(cls, header: Header, tensors: Tensors, build: Build) -> Self:
        parameters, inside = parameters_of(header), header.get("metric")
        check_parameters({"level": None, **parameters}, {"level": cls._rules["level"]})
        if set(parameters) != {"level"} or not isinstance(inside, dict):
            raise ModelFileError("the model file lacks the metric of its LevelMetric")
        fitted = build(inside, arrays_inside(tensors, _PREFIX))
        if not isinstance(fitted, NCMMetric):
            raise ModelFileError("the metric inside the LevelMetric is not an NCMMetric")
        metric = cls(clone(fitted), level=parameters["level"])
        n_features = fitted.n_features_in_
        metric._set_fitted(fitted, n_features, feature_names(header, n_features))
        return metric

    @property
    def _n_features_out(self) -> int:
        """Number of output features, which scikit-learn uses to name them."""
        return len(self.metric_.get_feature_names_out())

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that a label is a path of classes, but that there is one prediction."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        return tags
