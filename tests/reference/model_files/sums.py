"""Sums over examples: least squares, class means, metrics, rejection."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import evergrow
import evergrow.estimators
from evergrow.estimators.novelty.learner import predicted_labels
from evergrow.estimators.novelty.measures import MEASURES
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import check_parameters
from tests.reference.model_files.content import (
    FARTHEST,
    LARGEST_COMPONENT,
    LARGEST_MEAN,
    LARGEST_ROW,
    MOST_LEARNT,
    READERS,
    Header,
    Model,
    Tensors,
    array,
    built,
    check_names,
    inside,
    labels_of,
    number,
    parameters_of,
    whole,
)


def check_sums(tensors: Tensors, n_features: int, n_classes: int) -> None:
    """Check sums over examples per class, and of products if there are any."""
    sums = array(tensors, "class_sums", "f8", n_classes, n_features)
    weights = array(tensors, "class_weights", "f8", n_classes)
    examples = array(tensors, "class_examples", "i8", n_classes)
    assert (array(tensors, "class_squares", "f8", n_classes) >= 0).all()
    assert array(tensors, "peak", "f8", 1)[0] >= 0
    for k in range(n_classes):
        assert examples[k] >= 0
        assert weights[k] > 0 if examples[k] else weights[k] == 0
        assert examples[k] or not sums[k].any()
        with np.errstate(over="ignore"):
            assert not examples[k] or (np.abs(sums[k]) / weights[k] <= LARGEST_MEAN).all()
    assert 0 < sum(examples.tolist()) <= MOST_LEARNT
    n_products = n_features * (n_features + 1) // 2
    if "gram" in tensors:
        check_products(array(tensors, "gram", "f8", n_products), n_features)
        if "class_grams" in tensors:
            for products in array(tensors, "class_grams", "f8", n_classes, n_products):
                check_products(products, n_features)


def check_products(products: Any, n_features: int) -> None:
    """Check the upper triangle of a matrix of sums of products, row by row."""
    assert (np.abs(products) <= LARGEST_MEAN**2).all()
    at = 0
    for k in range(n_features):
        assert products[at] >= 0
        at += n_features - k


def check_stored(entry: Any, tensors: Tensors, n_features: int, n_classes: int) -> None:
    """Check stored examples."""
    whole(entry["seed"], 0, 2**63 - 1)
    share = entry["share"]
    assert type(share) is int
    assert share >= 1
    counts = array(tensors, "held_out.counts", "i8", n_classes, 4)
    codes = np.zeros(0, dtype=np.int32)
    if "held_out.rows" in tensors:
        rows = array(tensors, "held_out.rows", "f8", None, n_features)
        codes = array(tensors, "held_out.codes", "i4", len(rows))
        weights = array(tensors, "held_out.weights", "f8", len(rows))
        array(tensors, "held_out.priorities", "i8", len(rows))
        assert (np.abs(rows) <= LARGEST_ROW).all()
        assert ((weights > 0) & (weights <= LARGEST_ROW)).all()
        assert ((codes >= 0) & (codes < n_classes)).all()
    assert sum(counts[:, 0].tolist()) <= MOST_LEARNT
    for k, (seen, forgotten, drawn, has_evicted) in enumerate(counts.tolist()):
        kept = int((codes == k).sum())
        assert 0 <= forgotten <= seen
        assert 0 <= drawn <= seen - forgotten
        assert kept <= min(drawn, share)
        assert has_evicted in (0, 1)
        assert has_evicted or drawn == kept


def read_metric(header: Header, tensors: Tensors) -> Model:
    """Check a learnt projection."""
    built(evergrow.NCMMetric, parameters_of(header))
    components = array(tensors, "components", "f8", None, None)
    assert components.size
    assert (np.abs(components) <= LARGEST_COMPONENT).all()
    assert array(tensors, "log_likelihoods", "f8", None).size
    check_names(header, components.shape[1])
    return Model("metric", components.shape[1], components.shape[0], transforms=True)


def read_level_metric(header: Header, tensors: Tensors) -> Model:
    """Check a metric for one level of classes."""
    parameters = parameters_of(header)
    assert set(parameters) == {"level"}
    check_parameters(parameters, {"level": evergrow.estimators.LevelMetric._rules["level"]})
    metric = inside(header["metric"], tensors, "metric/")
    assert metric.kind == "metric"
    assert metric.n_inputs is not None
    check_names(header, metric.n_inputs)
    return Model("level metric", metric.n_inputs, metric.n_outputs, transforms=True)


def read_means(header: Header, tensors: Tensors) -> Model:
    """Check class means."""
    parameters = parameters_of(header)
    wanted = parameters.get("metric", "euclidean")
    if isinstance(wanted, dict):
        assert wanted["estimator"] == "NCMMetric"
        parameters["metric"] = built(evergrow.NCMMetric, parameters_of(wanted))
    estimator = built(evergrow.NCMClassifier, parameters)
    classes = labels_of(header["classes"])
    n_features = array(tensors, "class_sums", "f8", len(classes), None).shape[1]
    assert n_features
    check_sums(tensors, n_features, len(classes))
    assert (header.get("metric") is not None) == isinstance(wanted, dict)
    if isinstance(wanted, dict):
        assert header["metric"]["estimator"] == "NCMMetric"
        assert inside(header["metric"], tensors, "metric.").n_inputs == n_features
        assert means_are_finite(tensors)
    assert ("gram" in tensors) == (wanted == "mahalanobis")
    per_class = "gram" in tensors and "class_grams" in tensors
    assert per_class == ("gram" in tensors and bool(estimator.keep_class_statistics))
    check_names(header, n_features)
    return Model("classifier", n_features, classes=classes, forgets_by_examples=True)


def means_are_finite(tensors: Tensors) -> bool:
    """Whether no distance from a projected mean overflows, however far a sample is."""
    components, weights = tensors["metric.components"], tensors["class_weights"]
    known = weights > 0
    means = tensors["class_sums"][known] / weights[known, None]
    with np.errstate(all="ignore"):
        centre = tensors["class_sums"][known].sum(axis=0) / weights.sum()
        projected = (means - centre) @ components.T
        directions = projected @ components
        offsets = 0.5 * (projected**2).sum(axis=1)
        farthest = np.abs(directions).sum(axis=1) * FARTHEST
    return bool(np.isfinite(farthest).all() and np.isfinite(offsets).all())


def read_rejecting(header: Header, tensors: Tensors) -> Model:
    """Check a rejecting classifier and the one inside."""
    classes = labels_of(header["classes"])
    known = inside(header["inside"], tensors, "estimator/")
    assert known.classes is not None
    assert known.n_inputs is not None
    assert known.classes == classes
    assert header["measure"] in MEASURES
    check_sums(tensors, known.n_inputs, len(classes))
    assert "gram" not in tensors or header["measure"] == "auto"
    check_stored(header.get("held_out"), tensors, known.n_inputs, len(classes))
    check_calibration(tensors, len(classes))
    penalty = header.get("penalty")
    assert penalty is None or 0 < number(penalty) < math.inf
    parameters = parameters_of(header)
    assert "estimator" not in parameters
    estimator = built(
        evergrow.RejectingClassifier, {**parameters, "estimator": evergrow.NCMClassifier()}
    )
    assert estimator.measure == header["measure"]
    predicted_labels(
        ClassList(np.array(classes, dtype=header["classes"]["dtype"])), estimator.unknown_label
    )
    check_names(header, known.n_inputs)
    by_examples = known.forgets_by_examples
    return Model("classifier", known.n_inputs, classes=classes, forgets_by_examples=by_examples)


def check_calibration(tensors: Tensors, n_classes: int) -> None:
    """Check a stored calibration, if there is one."""
    if not any(name.startswith("calibration.") for name in tensors):
        return
    array(tensors, "calibration.usual", "f8", n_classes)
    assert (array(tensors, "calibration.spreads", "f8", n_classes) > 0).all()
    novelties = array(tensors, "calibration.novelties", "f8", None)
    assert novelties.tolist() == sorted(novelties.tolist())
    assert (array(tensors, "calibration.weights", "f8", len(novelties)) > 0).all()
    if "calibration.scales" in tensors:
        scales = array(tensors, "calibration.scales", "f8", None, 2)
        assert len(scales) in (2, 4)
        assert (scales[:, 1] >= 0).all()
    if "calibration.share" in tensors:
        assert 0 <= array(tensors, "calibration.share", "f8", 1)[0] <= 1


READERS.update(
    {
        "NCMClassifier": read_means,
        "NCMMetric": read_metric,
        "LevelMetric": read_level_metric,
        "RejectingClassifier": read_rejecting,
    }
)
