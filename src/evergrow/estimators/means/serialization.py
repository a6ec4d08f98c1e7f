"""Class means as a header and arrays of a model file, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from evergrow.estimators.means.fitted import FittedMeans
from evergrow.estimators.means.ncm_metric import NCMMetric
from evergrow.estimators.sums.serialization import Arrays, moments_from_arrays, moments_to_arrays
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.params import check_parameters
from evergrow.storage.models.header import (
    Build,
    arrays_inside,
    check_array,
    class_list,
    parameters_of,
    plain_parameters,
)

_METRIC = "metric."


def metric_to_json(metric: NCMMetric) -> dict[str, Any]:
    """Convert the parameter ``metric`` to JSON."""
    options = metric.get_params(deep=False)
    check_parameters(options, NCMMetric._rules)
    return {"estimator": NCMMetric.__name__, "parameters": plain_parameters(options)}


def metric_from_json(entry: dict[str, Any]) -> NCMMetric:
    """Convert the parameter ``metric`` from JSON."""
    if entry.get("estimator") != NCMMetric.__name__:
        raise ModelFileError("the model file has a damaged parameter: metric")
    return NCMMetric._from_parameters(parameters_of(entry))


def fitted_to_arrays(fitted: FittedMeans) -> tuple[dict[str, Any], Arrays]:
    """Return everything except the classes: the header of the metric, and named arrays."""
    arrays, header = moments_to_arrays(fitted.moments), None
    if fitted.metric is not None:
        header, inner = fitted.metric._to_file()
        arrays |= {_METRIC + name: array for name, array in inner.items()}
    return {"metric": header}, arrays


def fitted_from_arrays(header: dict[str, Any], arrays: Arrays, build: Build) -> FittedMeans:
    """Rebuild from :func:`fitted_to_arrays`; a ``ModelFileError`` for damaged content."""
    learnt = _read_metric(header, arrays, build)
    labels = class_list(header)
    shape = (len(labels), None)
    sums = check_array(arrays.get("class_sums"), "class_sums", np.float64, shape)
    if not sums.shape[1]:
        raise ModelFileError("the model file is inconsistent: it has no features")
    moments = moments_from_arrays(arrays, sums.shape[1], len(labels))
    if learnt is not None and learnt.components_.shape[1] != moments.n_features:
        raise ModelFileError("the model file is inconsistent: its metric has other features")
    fitted = FittedMeans(labels, moments, learnt)
    if learnt is not None:
        with np.errstate(all="ignore"):
            are_finite = fitted.scores(fitted.distance(0.0)).are_finite
        if not are_finite:
            raise ModelFileError("the model file is inconsistent: its metric overflows")
    return fitted


def _read_metric(header: dict[str, Any], arrays: Arrays, build: Build) -> NCMMetric | None:
    entry = header.get("metric")
    if entry is None:
        return None
    if not isinstance(entry, dict) or entry.get("estimator") != NCMMetric.__name__:
        raise ModelFileError("the model file is inconsistent: its metric is of an unknown kind")
    metric = build(entry, arrays_inside(arrays, _METRIC))
    assert isinstance(metric, NCMMetric)  # noqa: S101
    return metric
