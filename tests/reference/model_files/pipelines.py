"""Pipelines, steps of scikit-learn, and classifiers of images."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import evergrow
from evergrow.storage.models.sklearn_steps import SUPPORTED_STEPS
from tests.reference.model_files.content import (
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


def read_step(header: Header, tensors: Tensors) -> Model:
    """Check an estimator of scikit-learn's."""
    codec = SUPPORTED_STEPS[header["estimator"]]
    estimator = codec.kind(**parameters_of(header))
    estimator._validate_params()
    n_features, numbers = whole(header["n_features"], 1, 2**63), header["numbers"]
    assert isinstance(numbers, dict)
    assert isinstance(header["by_columns"], list)
    assert all(name in codec.written for name in header["by_columns"])
    model = STEPS[header["estimator"]](header, tensors, estimator, n_features)
    check_names(header, n_features)
    return model


def floats(tensors: Tensors, name: str, *shape: int | None) -> Any:
    """A finite array in single or double precision."""
    return array(tensors, name, "f4" if tensors[name].dtype == "f4" else "f8", *shape)


def check_scaler(header: Header, tensors: Tensors, scaler: Any, n_features: int) -> Model:
    """Check a ``StandardScaler``."""
    if scaler.with_mean or "mean_" in tensors:
        floats(tensors, "mean_", n_features)
    if scaler.with_std:
        assert (floats(tensors, "var_", n_features) >= 0).all()
        assert (floats(tensors, "scale_", n_features) > 0).all()
    if "n_samples_seen_" in tensors:
        kind = "i8" if tensors["n_samples_seen_"].dtype == "i8" else "f8"
        assert (array(tensors, "n_samples_seen_", kind, n_features) >= 0).all()
    else:
        assert 0 <= number(header["numbers"]["n_samples_seen_"]) < math.inf
    return Model("step", n_features, n_features, transforms=True)


def check_projection(header: Header, tensors: Tensors, pca: Any, n_features: int) -> Model:
    """Check a ``PCA``."""
    del pca
    n_kept = len(floats(tensors, "components_", None, n_features))
    assert 1 <= n_kept <= n_features
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        assert (floats(tensors, name, n_kept) >= 0).all()
    floats(tensors, "mean_", n_features)
    assert type(header["numbers"]["n_samples_"]) is int
    assert header["numbers"]["n_samples_"] >= 1
    assert 0 <= number(header["numbers"]["noise_variance_"]) < math.inf
    return Model("step", n_features, n_kept, transforms=True)


def check_planes(header: Header, tensors: Tensors, svm: Any, n_features: int) -> Model:
    """Check a ``LinearSVC``."""
    classes = labels_of(header["classes"])
    assert len(classes) >= 2
    n_planes = 1 if len(classes) == 2 else len(classes)
    floats(tensors, "coef_", n_planes, n_features)
    if svm.fit_intercept:
        floats(tensors, "intercept_", n_planes)
    assert type(header["numbers"]["n_iter_"]) is int
    assert header["numbers"]["n_iter_"] >= 0
    return Model("step", n_features, classes=classes)


def check_nothing(header: Header, tensors: Tensors, step: Any, n_features: int) -> Model:
    """A ``Normalizer`` has learnt nothing."""
    del header, tensors, step
    return Model("step", n_features, n_features, transforms=True)


STEPS: dict[str, Callable[[Header, Tensors, Any, int], Model]] = {
    "StandardScaler": check_scaler,
    "Normalizer": check_nothing,
    "PCA": check_projection,
    "LinearSVC": check_planes,
}


def read_pipeline(header: Header, tensors: Tensors) -> Model:
    """Check the steps of a pipeline, and that each takes what the one before it gives."""
    parameters, steps = parameters_of(header), header["steps"]
    assert set(parameters) == {"verbose"}
    assert type(parameters["verbose"]) is bool
    assert isinstance(steps, list)
    assert steps
    names = []
    for name, _ in steps:
        assert type(name) is str
        assert name
        assert "__" not in name
        assert name not in ("steps", "memory", "verbose", "transform_input")
        names.append(name)
    assert all(isinstance(step, list) for step in steps)
    assert len(set(names)) == len(names)
    models, width = [], None
    for place, (_, entry) in enumerate(steps):
        if entry is None:
            continue
        model = inside(entry, tensors, f"{place}/")
        models.append(model)
        assert model.transforms or place == len(steps) - 1
        assert model.n_inputs is None or width in (None, model.n_inputs)
        width = model.n_outputs if model.n_inputs is not None and model.transforms else None
    last = models[-1] if models and steps[-1][1] is not None else None
    transforms = last is None or last.transforms
    n_inputs = models[0].n_inputs if models and steps[0][1] is not None else None
    classes = None if last is None else last.classes
    return Model("pipeline", n_inputs, width, classes, transforms)


def read_images(header: Header, tensors: Tensors) -> Model:
    """Check a classifier of images: its features, its learner and what is known of the images."""
    classes = labels_of(header["classes"])
    header = without_machine(header)
    features = inside(header["features"], tensors, "features/")
    assert features.transforms
    learner = inside(header["learner"], tensors, "learner/")
    assert learner.kind == "classifier"
    assert learner.classes == classes
    assert learner.n_inputs is not None
    counts = array(tensors, "image_counts", "i8", len(classes))
    assert (counts >= 0).all()
    if "rows.values" in tensors:
        rows = floats(tensors, "rows.values", None, learner.n_inputs)
        codes = array(tensors, "rows.codes", "i4", len(rows)).tolist()
        assert all(0 <= code < len(classes) for code in codes)
        assert [codes.count(k) for k in range(len(classes))] == counts.tolist()
        assert learner.forgets_by_examples
    check_known_images(tensors, counts.tolist())
    parameters = {**parameters_of(header), "n_jobs": None, "verbose": 0}
    for name, model in (("features", features), ("learner", learner)):
        if parameters.get(name) is None:
            parameters[name] = STAND_INS[name]
        del model
    built(evergrow.ImageClassifier, parameters)
    return Model("image classifier", None, classes=classes)


def check_known_images(tensors: Tensors, counts: list[int]) -> None:
    """Check the hashes of known images, which older files lack: sorted, different, with classes."""
    if "fingerprints.digests" not in tensors and "fingerprints.codes" not in tensors:
        return
    digests = array(tensors, "fingerprints.digests", "u1", None, 16)
    codes = array(tensors, "fingerprints.codes", "i4", len(digests)).tolist()
    assert all(0 <= code < len(counts) for code in codes)
    assert all(codes.count(k) <= count for k, count in enumerate(counts))
    pairs = [(bytes(row.tolist()), code) for row, code in zip(digests, codes, strict=True)]
    assert pairs == sorted(set(pairs))


def without_machine(entry: Any) -> Any:
    """A header whose numbers of threads and progress bars, at any depth, are the default ones."""
    if isinstance(entry, list):
        return [without_machine(one) for one in entry]
    if not isinstance(entry, dict):
        return entry
    plain = {name: without_machine(value) for name, value in entry.items()}
    parameters = plain.get("parameters")
    if isinstance(parameters, dict):
        for name, usual in (("n_jobs", None), ("verbose", 0)):
            if name in parameters:
                parameters[name] = False if isinstance(parameters[name], bool) else usual
    return plain


STAND_INS = {"features": "hsl", "learner": "rls"}


READERS.update(dict.fromkeys(STEPS, read_step))
READERS.update({"ImageClassifier": read_images, "Pipeline": read_pipeline})
