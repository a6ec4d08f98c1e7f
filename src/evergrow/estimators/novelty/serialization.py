"""What a rejecting classifier has learnt as a header and arrays of a model file, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from evergrow.estimators.novelty.calibration import Calibration
from evergrow.estimators.novelty.fitted import FittedRejection
from evergrow.estimators.novelty.measures import MEASURES
from evergrow.estimators.novelty.summed_scores import N_OTHERS
from evergrow.estimators.sums.serialization import (
    Arrays,
    holdout_from_arrays,
    holdout_header,
    holdout_to_arrays,
    moments_from_arrays,
    moments_to_arrays,
)
from evergrow.foundation.errors import ModelFileError
from evergrow.storage.models.header import Build, arrays_inside, check_array, class_list

_INSIDE = "estimator/"
_FIXED = "calibration."
_SCALES = f"{_FIXED}scales"
_SHARE = f"{_FIXED}share"
_FIXED_PARTS = ("usual", "spreads", "novelties", "weights")


def fitted_to_arrays(fitted: FittedRejection) -> tuple[dict[str, Any], Arrays]:
    """Return header entries and arrays, including those of the wrapped estimator."""
    inner_header, inner = fitted.estimator._to_file()
    header = {
        "inside": inner_header,
        "measure": fitted.measure,
        "held_out": holdout_header(fitted.holdout),
        "penalty": fitted.penalty,
    }
    arrays = moments_to_arrays(fitted.moments) | holdout_to_arrays(fitted.holdout)
    if fitted.fixed is not None:
        arrays |= {_FIXED + name: getattr(fitted.fixed, name) for name in _FIXED_PARTS}
        if len(fitted.fixed.scales):
            arrays[_SCALES] = fitted.fixed.scales
            arrays[_SHARE] = np.array([fitted.fixed.share])
    return header, arrays | {_INSIDE + name: array for name, array in inner.items()}


def fitted_from_arrays(header: dict[str, Any], arrays: Arrays, build: Build) -> FittedRejection:
    """Rebuild from :func:`fitted_to_arrays`; a ``ModelFileError`` for damaged content."""
    labels = class_list(header)
    estimator = _read_inside(header, arrays, build)
    if estimator.classes_.tolist() != labels.classes.tolist():
        raise ModelFileError("the model file is inconsistent: the model inside has other classes")
    measure = header.get("measure")
    if not isinstance(measure, str) or measure not in MEASURES:
        raise ModelFileError(f"the model file has an unknown measure {measure!r}")
    sizes = (estimator.n_features_in_, len(labels))
    moments = moments_from_arrays(arrays, *sizes)
    if moments.settled is not None and measure != "auto":
        raise ModelFileError("the model file is inconsistent: it has a Gram matrix")
    holdout = holdout_from_arrays(header.get("held_out"), arrays, *sizes)
    fixed = _read_fixed(arrays, len(labels))
    penalty = _read_penalty(header)
    return FittedRejection(labels, estimator, moments, holdout, measure, fixed, penalty)


def _read_penalty(header: dict[str, Any]) -> float | None:
    penalty = header.get("penalty")
    if penalty is None:
        return None
    if type(penalty) not in (int, float) or not 0 < penalty < np.inf:
        raise ModelFileError("the model file is inconsistent: its penalty is not positive")
    return float(penalty)


def _read_fixed(arrays: Arrays, n_classes: int) -> Calibration | None:
    if not any(name.startswith(_FIXED) for name in arrays):
        return None
    sizes = dict.fromkeys(_FIXED_PARTS, n_classes)
    some = arrays.get(f"{_FIXED}novelties")
    sizes |= dict.fromkeys(("novelties", "weights"), 0 if some is None else some.size)
    parts = {
        name: check_array(arrays.get(_FIXED + name), _FIXED + name, np.float64, (size,))
        for name, size in sizes.items()
    }
    ordered = (np.diff(parts["novelties"]) >= 0).all()
    if not ordered or (parts["spreads"] <= 0).any() or (parts["weights"] <= 0).any():
        raise ModelFileError("the model file is inconsistent: its calibration has invalid values")
    scales, share = np.zeros((0, 2)), np.ones(1)
    if _SCALES in arrays or _SHARE in arrays:
        scales = check_array(arrays.get(_SCALES), _SCALES, np.float64, (N_OTHERS, 2))
        share = check_array(arrays.get(_SHARE), _SHARE, np.float64, (1,))
    if (scales[:, 1:] < 0).any() or not 0 <= share[0] <= 1:
        raise ModelFileError("the model file is inconsistent: its calibration has invalid values")
    return Calibration(**parts, scales=scales, share=float(share[0]))


def _read_inside(header: dict[str, Any], arrays: Arrays, build: Build) -> Any:
    inside = header.get("inside")
    if not isinstance(inside, dict):
        raise ModelFileError("the model file lacks the model inside")
    estimator = build(inside, arrays_inside(arrays, _INSIDE))
    if not hasattr(estimator, "classes_"):
        raise ModelFileError("the model inside the model file is not a classifier")
    return estimator
