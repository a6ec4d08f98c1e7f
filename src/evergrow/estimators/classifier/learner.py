"""What every estimator that grows does at the door: checks, and one swap when all went well."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from evergrow.foundation.labels import ClassList, as_classes, check_label_types
from evergrow.foundation.params import Rule, check_parameters
from evergrow.storage.modelfile import check_saveable
from evergrow.storage.shards import ShardLabels, StoredRows

__all__ = [
    "Fitted",
    "GrowingClassifier",
    "check_targets",
    "checked_examples",
    "checked_rows",
    "snapshot",
    "swap_learnt",
]

Estimator = TypeVar("Estimator", bound=BaseEstimator)


class Fitted(Protocol):
    """What an estimator has learnt, as one value that is replaced whole."""

    @property
    def labels(self) -> ClassList | None:
        """The classes, in the order of their columns; None if it learnt without any."""

    @property
    def n_features(self) -> int:
        """Number of features of the input."""


class GrowingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose set of classes grows; subclasses add parameters and what is learnt.

    All that is learnt lies in ``_fitted``, a value that calls replace and never change. A call that
    fails or is interrupted leaves the old one, and other threads see the old or the new one whole.
    """

    # What each parameter may be.
    _rules: ClassVar[dict[str, list[Rule]]]
    _fitted: Any

    def _become(self, fitted: Fitted, names: npt.NDArray[Any] | None, **learnt: Any) -> None:
        """Take what was learnt; ``learnt`` are further attributes, None for those not there."""
        swap_learnt(
            self,
            {
                **learnt,
                "_fitted": fitted,
                "feature_names_in_": names,
                "n_features_in_": fitted.n_features,
            },
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is anything to predict with."""
        return "_fitted" in vars(self)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, in the order of the columns of :meth:`predict_proba`."""
        classes: npt.NDArray[Any] = self._learnt("classes_").labels.classes
        return classes

    def _learnt(self, name: str) -> Any:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet, so it has no {name}. "
                "Call 'fit' first."
            )
        return self._fitted

    def _snapshot(self) -> Self:
        return snapshot(self)

    def _check_parameters(self) -> None:
        check_parameters({name: getattr(self, name) for name in self._rules}, self._rules)

    def _checked_query(self, X: npt.ArrayLike) -> tuple[Self, npt.NDArray[Any]]:
        """Samples to predict, and the estimator as it is now."""
        reader = self._snapshot()
        check_is_fitted(reader)
        return reader, checked_rows(reader, X, reset=False)

    def _checked_first(
        self, X: npt.ArrayLike, y: npt.ArrayLike, *, min_samples: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any] | None]:
        """The first training samples, their labels, and the names of the features if any."""
        check_label_types(y)
        # Validation records names and number of features on the estimator it is given: a clone,
        # so that a failure later leaves this one untouched.
        learner = clone(self)
        checked = checked_examples(learner, X, y, min_samples=min_samples)
        check_targets(checked[1])
        return *checked, getattr(learner, "feature_names_in_", None)

    def _checked_more(
        self, X: npt.ArrayLike, y: npt.ArrayLike
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Further training samples and their labels."""
        check_label_types(y)
        checked = checked_examples(self, X, y, reset=False)
        check_targets(checked[1])
        return checked

    @staticmethod
    def _first_labels(
        y: npt.NDArray[Any], classes: npt.ArrayLike | None
    ) -> tuple[ClassList, npt.NDArray[np.int32]]:
        """The classes of the first labels and those listed, sorted; a column per label."""
        labels, codes = ClassList.of(y)
        listed = as_classes(classes)
        if len(listed):
            named, _ = labels.extend(listed)
            labels, codes = ClassList.of(named.classes)[0].extend(y)
        return labels, codes

    def _checked_to_save(self) -> Self:
        """The estimator as it is now, if it can be written to a file and read back."""
        reader = self._snapshot()
        reader._learnt("model to save")
        # Else the file could not be loaded.
        reader._check_parameters()
        check_saveable(type(self))
        return reader


def snapshot(estimator: Estimator) -> Estimator:
    """One look at what is learnt, which another thread may replace at any moment."""
    reader = object.__new__(type(estimator))
    reader.__dict__ = dict(vars(estimator))
    return reader


def swap_learnt(estimator: BaseEstimator, learnt: dict[str, Any]) -> None:
    """Replace all that an estimator has learnt; None stands for what is not there."""
    kept = {
        name: value
        for name, value in vars(estimator).items()
        if name != "_fitted" and not name.endswith("_")
    }
    new = {name: value for name, value in learnt.items() if value is not None}
    # One assignment: another thread sees all of the old or all of the new.
    estimator.__dict__ = kept | new


def checked_rows(
    estimator: BaseEstimator, X: npt.ArrayLike, *, reset: bool = True, **options: Any
) -> npt.NDArray[Any]:
    """Rows as scikit-learn checks them, its ``options`` included; those on disk stay there.

    Their numbers are checked when they are read, so they need not be read for it here.
    """
    if not isinstance(X, StoredRows):
        checked: npt.NDArray[Any] = validate_data(estimator, X, reset=reset, **options)
        return checked
    least = options.get("ensure_min_samples", 1)
    if len(X) < least:
        raise ValueError(
            f"Found array with {len(X)} sample(s) (shape={X.shape}) while a minimum of {least} is "
            f"required by {type(estimator).__name__}."
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    # It has all that is asked of a matrix that is gone through in blocks.
    return cast("npt.NDArray[Any]", X)


def checked_examples(
    estimator: BaseEstimator,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    reset: bool = True,
    min_samples: int = 1,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Rows and a label for each; rows on disk stay there, and labels kept as numbers stay so."""
    options = {"ensure_min_samples": min_samples, "ensure_min_features": 1}
    if not isinstance(X, StoredRows) and not isinstance(y, ShardLabels):
        checked: tuple[npt.NDArray[Any], npt.NDArray[Any]] = validate_data(
            estimator, X, y, reset=reset, **options
        )
        return checked
    rows = checked_rows(estimator, X, reset=reset, **options)
    if isinstance(y, ShardLabels):
        y.check_all_labelled()
        labels = cast("npt.NDArray[Any]", y)
    else:
        labels = validate_data(estimator, "no_validation", y)
    check_consistent_length(rows, labels)
    return rows, labels


def check_targets(y: npt.NDArray[Any]) -> None:
    """Raise a ``ValueError`` for labels that are no classes, such as measured numbers."""
    # Integers and strings are always classes, and the check costs more than learning one example.
    if y.dtype.kind in "biuU":
        return
    # Every class twice: scikit-learn warns where most classes have one sample, which is what a
    # batch of new classes may well look like.
    check_classification_targets(np.repeat(np.unique(y), 2))
