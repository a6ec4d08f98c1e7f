"""The scikit-learn estimators that model files can hold: what is saved of each, and its checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from evergrow.foundation.errors import InvalidTypeError, ModelFileError
from evergrow.foundation.labels import ClassList
from evergrow.storage.models.header import (
    Build,
    Tensors,
    check_array,
    class_list,
    classes_to_json,
    common_header,
    feature_names,
    parameters_of,
    plain_parameters,
)

_PLAIN = (type(None), bool, int, float, str)


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds of one estimator, with checks for each kind of content."""

    arrays: Tensors
    numbers: Mapping[str, Any]
    by_columns: frozenset[str]
    n_features: int
    labels: ClassList | None

    def floats(self, name: str, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
        """A finite array of this shape, in the memory order it was saved from."""
        array = self.arrays.get(name)
        single = array is not None and array.dtype == np.float32
        checked = check_array(array, name, np.float32 if single else np.float64, shape)
        # Products round differently in another order, and predictions are to be the same.
        return np.asfortranarray(checked) if name in self.by_columns else checked

    def number(self, name: str, low: float, *, whole: bool) -> int | float:
        """A number of at least ``low``."""
        value: Any = self.numbers.get(name)
        allowed = (int,) if whole else (int, float)
        if type(value) not in allowed or not low <= value < float("inf"):
            raise ModelFileError(f"the model file is inconsistent: {name} is {value!r}")
        found: int | float = value
        return found


# From what is stored and the estimator with its parameters to the learnt attributes.
Read = Callable[[Stored, Any], dict[str, Any]]


@dataclass(frozen=True)
class StepCodec:
    """One class of scikit-learn's: the attributes that are written, and how they are read."""

    kind: type
    written: tuple[str, ...]
    read: Read
    has_classes: bool = False

    def to_file(self, estimator: Any) -> tuple[dict[str, Any], Tensors]:
        """Header and arrays of a fitted estimator."""
        check_is_fitted(estimator, "n_features_in_")
        parameters = plain_parameters(estimator.get_params(deep=False))
        for name, value in parameters.items():
            if not isinstance(value, _PLAIN):
                raise InvalidTypeError(
                    f"{name} of {self.kind.__name__} cannot be saved, only None, True, False, "
                    f"numbers and strings can; got {value!r}"
                )
        learnt = {name: getattr(estimator, name) for name in self.written}
        arrays = {name: value for name, value in learnt.items() if isinstance(value, np.ndarray)}
        header = {
            **common_header(estimator, parameters),
            "classes": classes_to_json(estimator.classes_) if self.has_classes else None,
            "n_features": int(estimator.n_features_in_),
            "numbers": {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in learnt.items()
                if value is not None and name not in arrays
            },
            "by_columns": sorted(
                name
                for name, array in arrays.items()
                if array.ndim == 2 and array.strides[0] < array.strides[1]
            ),
        }
        return header, arrays

    def _from_file(self, header: dict[str, Any], tensors: Tensors, _build: Build) -> Any:
        """An estimator of scikit-learn's; a ``ModelFileError`` if anything does not fit."""
        estimator = self.kind(**parameters_of(header))
        estimator._validate_params()
        n_features, numbers = header.get("n_features"), header.get("numbers")
        by_columns = header.get("by_columns")
        if type(n_features) is not int or n_features < 1 or not isinstance(numbers, dict):
            raise ModelFileError("the model file lacks the number of features of a step")
        if not isinstance(by_columns, list) or any(n not in self.written for n in by_columns):
            raise ModelFileError("the model file lacks the memory order of a step's arrays")
        labels = class_list(header.get("classes")) if self.has_classes else None
        stored = Stored(tensors, numbers, frozenset(by_columns), n_features, labels)
        learnt = self.read(stored, estimator) | {"n_features_in_": n_features}
        names = feature_names(header, n_features)
        if names is not None:
            learnt["feature_names_in_"] = names
        vars(estimator).update(learnt)
        return estimator


def _read_scaler(stored: Stored, scaler: StandardScaler) -> dict[str, Any]:
    needed = {"mean_": scaler.with_mean, "var_": scaler.with_std, "scale_": scaler.with_std}
    learnt: dict[str, Any] = {
        name: stored.floats(name, (stored.n_features,))
        if must or (name in stored.arrays and name == "mean_")
        else None
        for name, must in needed.items()
    }
    if scaler.with_std and ((learnt["var_"] < 0).any() or (learnt["scale_"] <= 0).any()):
        raise ModelFileError(
            "the model file is inconsistent: a variance is negative or a scale is not positive"
        )
    seen: Any = stored.arrays.get("n_samples_seen_")
    if seen is None:
        seen = stored.number("n_samples_seen_", 0, whole=False)
    else:
        kind = np.int64 if seen.dtype == np.int64 else np.float64
        seen = check_array(seen, "n_samples_seen_", kind, (stored.n_features,))
        if (seen < 0).any():
            raise ModelFileError("the model file is inconsistent: n_samples_seen_ is negative")
    return {**learnt, "n_samples_seen_": seen}


def _read_projection(stored: Stored, pca: PCA) -> dict[str, Any]:  # noqa: ARG001
    components = stored.floats("components_", (None, stored.n_features))
    n_components = len(components)
    if not 1 <= n_components <= stored.n_features:
        raise ModelFileError("the model file is inconsistent: its projection is of the wrong size")
    per_component = {
        name: stored.floats(name, (n_components,))
        for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_")
    }
    if any((values < 0).any() for values in per_component.values()):
        raise ModelFileError("the model file is inconsistent: a variance is negative")
    return {
        **per_component,
        "components_": components,
        "mean_": stored.floats("mean_", (stored.n_features,)),
        "n_components_": n_components,
        "n_samples_": stored.number("n_samples_", 1, whole=True),
        "noise_variance_": stored.number("noise_variance_", 0.0, whole=False),
    }


def _read_planes(stored: Stored, svm: LinearSVC) -> dict[str, Any]:
    n_classes = 0 if stored.labels is None else len(stored.labels)
    if stored.labels is None or n_classes < 2:
        raise ModelFileError("the model file is inconsistent: it has fewer than 2 classes")
    n_planes = 1 if n_classes == 2 else n_classes
    intercept: Any = 0.0
    if svm.fit_intercept:
        intercept = stored.floats("intercept_", (n_planes,))
    return {
        "coef_": stored.floats("coef_", (n_planes, stored.n_features)),
        "intercept_": intercept,
        "classes_": stored.labels.classes.copy(),
        "n_iter_": stored.number("n_iter_", 0, whole=True),
    }


_PROJECTION = (
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "singular_values_",
    "mean_",
    "n_samples_",
    "noise_variance_",
)

SUPPORTED_STEPS: dict[str, StepCodec] = {
    codec.kind.__name__: codec
    for codec in (
        StepCodec(StandardScaler, ("mean_", "var_", "scale_", "n_samples_seen_"), _read_scaler),
        StepCodec(Normalizer, (), lambda *_: {}),
        StepCodec(PCA, _PROJECTION, _read_projection),
        StepCodec(LinearSVC, ("coef_", "intercept_", "n_iter_"), _read_planes, has_classes=True),
    )
}
