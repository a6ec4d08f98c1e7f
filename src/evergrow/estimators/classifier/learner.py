"""What all growing classifiers share: checks of the input, and one swap of the fitted value."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol, Self, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from evergrow.estimators.classifier.documentation import DocLinkMixin
from evergrow.estimators.classifier.persistence import FittedSaveMixin
from evergrow.foundation.device import is_on_gpu
from evergrow.foundation.errors import EvergrowError, InvalidInputError, InvalidTypeError
from evergrow.foundation.foreign_arrays import from_other_library, on_processor
from evergrow.foundation.labels import ClassList, as_classes, check_label_types
from evergrow.foundation.params import Rule, Value, check_parameters
from evergrow.storage.device_rows import DeviceRows
from evergrow.storage.models.header import check_saveable
from evergrow.storage.shards import ShardLabels, StoredRows, choose_rows

Estimator = TypeVar("Estimator", bound=BaseEstimator)
Rows: TypeAlias = npt.NDArray[Any]

# Sums of squares of larger weights would overflow.
_LARGEST_WEIGHT = 1e140


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise a ``ValueError`` or ``TypeError`` of scikit-learn again, as an error of the input.

    The new error is a ``ValueError`` or ``TypeError`` too, with the same message.

    >>> with translate_errors():
    ...     raise ValueError("Found array with 0 sample(s)")
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.InvalidInputError: Found array with 0 sample(s)
    """
    try:
        yield
    except (EvergrowError, NotFittedError):
        raise
    except TypeError as error:
        raise InvalidTypeError(str(error)) from error
    except ValueError as error:
        raise InvalidInputError(str(error)) from error


class Fitted(Protocol):
    """What an estimator has learnt, as one immutable value."""

    @property
    def labels(self) -> ClassList | None:
        """The classes, in column order; None for an estimator without classes."""

    @property
    def n_features(self) -> int:
        """Number of features of the input."""


class GrowingClassifier(FittedSaveMixin, DocLinkMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose set of classes grows; subclasses add parameters and learning.

    Everything learnt is in ``_fitted``, an immutable value that each call replaces. A call that
    fails or is interrupted leaves the old value, and other threads see either the old or the new
    one.
    """

    # The values that each parameter may have.
    _rules: ClassVar[dict[str, list[Rule]]]
    _fitted: Any

    def _set_fitted(self, fitted: Fitted, names: npt.NDArray[Any] | None, **learnt: Any) -> None:
        """Replace the fitted value; ``learnt`` are further attributes, None if absent."""
        replace_fitted(
            self,
            {
                **learnt,
                "_fitted": fitted,
                "feature_names_in_": names,
                "n_features_in_": fitted.n_features,
            },
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether the estimator is fitted."""
        return "_fitted" in vars(self)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, in the order of the columns of :meth:`predict_proba`."""
        return cast("npt.NDArray[Any]", self._require_fitted("classes_").labels.classes)

    def _require_fitted(self, name: str) -> Any:
        """Return the fitted value; a ``NotFittedError`` that mentions ``name`` without one."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet, so it has no {name}. "
                "Call 'fit' first."
            )
        return self._fitted

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator, and fields of those that are values.

        Parameters
        ----------
        **params : object
            New values by name. ``update__share=0.5`` sets a field of a value such as ``RUST()``.

        Returns
        -------
        self : estimator
            The estimator.
        """
        for name in [name for name in params if "__" in name]:
            parameter, _, field = name.partition("__")
            value = params.get(parameter, getattr(self, parameter, None))
            if isinstance(value, Value):
                params[parameter] = value.set_params(**{field: params.pop(name)})
            elif parameter in self._rules and not hasattr(value, "set_params"):
                allowed = " or ".join(str(rule) for rule in self._rules[parameter])
                raise InvalidInputError(
                    f"{name} needs a value in {parameter}, which is {value!r}; it may be {allowed}"
                )
        return cast("Self", super().set_params(**params))

    def _frozen_copy(self) -> Self:
        return frozen_copy(self)

    def _check_parameters(self) -> None:
        check_parameters({name: getattr(self, name) for name in self._rules}, self._rules)

    def _checked_query(self, X: npt.ArrayLike) -> tuple[Self, npt.NDArray[Any]]:
        """Return a frozen copy of the estimator, and the checked samples to predict."""
        reader = self._frozen_copy()
        check_is_fitted(reader)
        return reader, validate_rows(reader, X, reset=False)

    def _checked_first(
        self, X: npt.ArrayLike, y: npt.ArrayLike, *, min_samples: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any] | None]:
        """Return the first training samples, their labels, and the feature names if any."""
        check_label_types(y)
        # Validation records names and number of features on the estimator it is given. It gets a
        # clone, so that a later failure leaves this one unchanged.
        learner = clone(self)
        checked = validate_examples(learner, X, y, min_samples=min_samples)
        check_targets(checked[1])
        return *checked, getattr(learner, "feature_names_in_", None)

    def _checked_more(
        self, X: npt.ArrayLike, y: npt.ArrayLike
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return further training samples and their labels."""
        check_label_types(y)
        checked = validate_examples(self, X, y, reset=False)
        check_targets(checked[1])
        return checked

    @staticmethod
    def _first_labels(
        y: npt.NDArray[Any], classes: npt.ArrayLike | None
    ) -> tuple[ClassList, npt.NDArray[np.int32]]:
        """Return the classes of the first labels and the listed ones, sorted, and label columns."""
        labels, codes = ClassList.of(y)
        listed = as_classes(classes)
        if len(listed):
            named, _ = labels.extend(listed)
            labels, codes = ClassList.of(named.classes)[0].extend(y)
        return labels, codes

    def _checked_to_save(self) -> Self:
        """Return a frozen copy of the estimator if it can be saved and loaded."""
        reader = self._frozen_copy()
        reader._require_fitted("model to save")
        # A file with invalid parameters could not be loaded.
        reader._check_parameters()
        check_saveable(type(self))
        return reader


def frozen_copy(estimator: Estimator) -> Estimator:
    """Return a shallow copy whose fitted value does not change when another thread learns."""
    reader = object.__new__(type(estimator))
    reader.__dict__ = dict(vars(estimator))
    return reader


def replace_fitted(estimator: BaseEstimator, learnt: dict[str, Any]) -> None:
    """Replace all learnt attributes of an estimator; None means that one is absent."""
    kept = {
        name: value
        for name, value in vars(estimator).items()
        if name != "_fitted" and not name.endswith("_")
    }
    new = {name: value for name, value in learnt.items() if value is not None}
    # One assignment: another thread sees all old attributes or all new ones.
    estimator.__dict__ = kept | new


@translate_errors()
def validate_rows(
    estimator: BaseEstimator, X: npt.ArrayLike, *, reset: bool = True, **options: Any
) -> npt.NDArray[Any]:
    """Validate rows as scikit-learn does, with its ``options``.

    Rows on disk are not read here: their values are checked when they are read. Rows in the memory
    of a GPU stay there.
    """
    _check_not_paths(X)
    X = from_other_library(X)
    if is_on_gpu(X):
        X = DeviceRows.of(X)
    if not isinstance(X, StoredRows):
        return cast("npt.NDArray[Any]", validate_data(estimator, X, reset=reset, **options))
    least = options.get("ensure_min_samples", 1)
    if len(X) < least:
        raise InvalidInputError(
            f"Found array with {len(X)} sample(s) (shape={X.shape}) while a minimum of {least} is "
            f"required by {type(estimator).__name__}."
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    # Stored rows can be read in blocks like a matrix.
    return cast("npt.NDArray[Any]", X)


@translate_errors()
def validate_examples(
    estimator: BaseEstimator,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    reset: bool = True,
    min_samples: int = 1,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Validate rows and labels; rows on disk and encoded labels of shards stay as they are."""
    options = {"ensure_min_samples": min_samples, "ensure_min_features": 1}
    _check_not_paths(X)
    # Labels are needed on the processor, wherever the rows are.
    X, y = from_other_library(X), on_processor(y)
    if not isinstance(X, StoredRows) and not is_on_gpu(X) and not isinstance(y, ShardLabels):
        checked = validate_data(estimator, X, y, reset=reset, **options)
        return cast("tuple[npt.NDArray[Any], npt.NDArray[Any]]", checked)
    rows = validate_rows(estimator, X, reset=reset, **options)
    if isinstance(y, ShardLabels):
        y.check_all_labelled()
        labels = cast("npt.NDArray[Any]", y)
    else:
        labels = validate_data(estimator, "no_validation", y)
    check_consistent_length(rows, labels)
    return rows, labels


def _check_not_paths(X: object) -> None:
    """Raise an ``InvalidTypeError`` for names of files, or other text, in place of features."""
    kinds, given, whole = (str, bytes, os.PathLike), X, ""
    if isinstance(X, (list, tuple)) or getattr(X, "ndim", 0) == 1:
        given = next(iter(cast(Any, X)), None)
        whole = "list of " if isinstance(X, (list, tuple)) else "column of "
    if isinstance(given, kinds):
        name = type(given).__name__.removesuffix("_")
        raise InvalidTypeError(
            f"X must be an array of features, got a {whole}{name}: for pictures use "
            "ImageClassifier or Embedder; numpy.load reads an .npz"
        )


def validate_weights(
    X: Rows, y: npt.NDArray[Any], sample_weight: npt.ArrayLike | None
) -> tuple[Rows, npt.NDArray[Any], npt.NDArray[np.float64] | None]:
    """Validate the weights of rows; return rows, labels and weights, without those of weight 0."""
    if sample_weight is None:
        return X, y, None
    with translate_errors():
        checked = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    # A copy: the caller may change the array while the weights are still needed.
    weights = np.array(checked)
    if (weights > _LARGEST_WEIGHT).any():
        raise InvalidInputError(f"sample_weight must be at most {_LARGEST_WEIGHT:g}")
    present = weights > 0
    if not present.any():
        raise InvalidInputError("sample_weight must not be 0 for all samples")
    if present.all():
        return X, y, weights
    return choose_rows(X, present), y[present], weights[present]


@translate_errors()
def check_targets(y: npt.NDArray[Any]) -> None:
    """Raise a ``ValueError`` for labels that are not classes, such as continuous numbers."""
    # Integers and strings are always classes, and the check takes longer than learning a sample.
    if y.dtype.kind in "biuU":
        return
    # Every class twice: scikit-learn warns if most classes have one sample, but a batch of new
    # classes often looks like that.
    check_classification_targets(np.repeat(np.unique(y), 2))
