"""Least squares: sums, weights without sums, and what was selected."""

from __future__ import annotations

from typing import Any

from evergrow.estimators.linear.feature_map import MAPS, map_from_json, resolve_map
from tests.reference.model_files.content import (
    MOST_LEARNT,
    READERS,
    Header,
    Model,
    Tensors,
    array,
    built,
    check_names,
    estimator_class,
    labels_of,
    parameters_of,
    real,
    whole,
)
from tests.reference.model_files.sums import check_stored, check_sums


def read_least_squares(header: Header, tensors: Tensors) -> Model:
    """Check a classifier of least squares."""
    parameters, kind = parameters_of(header), estimator_class(header)
    if "max_held_out" in parameters:
        parameters["max_stored"] = parameters.pop("max_held_out")
        if "scoring" in kind._rules:
            parameters["scoring"] = "regression"
    wanted = parameters["feature_map"] = map_from_json(parameters.get("feature_map"))
    estimator = built(kind, parameters)
    classes = labels_of(header["classes"])
    entry = header["features"]
    assert entry["kind"] in ("none", *MAPS)
    n_inputs = whole(entry["n_inputs"], 1, 2**63 - 1)
    n_random = whole(entry["n_random"], 0, 2**63 - 1)
    whole(entry["seed"], 0, 2**63 - 1)
    assert real(entry["gamma"]) > 0
    with_inputs = entry.get("with_inputs", False)
    assert type(with_inputs) is bool
    assert (entry["kind"] != "none") == (n_random > 0 or with_inputs)
    assert type(header["intercept"]) is bool
    copied = n_inputs if entry["kind"] == "none" or with_inputs else 0
    width = copied + n_random + header["intercept"]
    check_selection(header.get("selection"), tensors, len(classes))
    assert not (estimator.n_random_features == "auto" and estimator.selection == "paper")
    if estimator.blocks is not None and estimator.n_random_features in (0, "auto"):
        assert not estimator.blocks or sum(estimator.blocks) == n_inputs
    if header.get("fixed") is not None:
        check_fixed(header["fixed"], tensors, width, len(classes))
        check_names(header, n_inputs)
        return Model("classifier", n_inputs, classes=classes, forgets_by_examples=True)
    check_sums(tensors, width, len(classes))
    assert "gram" in tensors
    check_stored(header.get("held_out"), tensors, n_inputs, len(classes))
    assert bool(estimator.fit_intercept) == header["intercept"]
    assert estimator.n_random_features == ("auto" if with_inputs else n_random)
    assert bool(getattr(estimator, "keep_class_statistics", False)) == ("class_grams" in tensors)
    if entry["kind"] != "none":
        assert resolve_map(wanted).name == entry["kind"]
        width_asked = getattr(resolve_map(wanted), "gamma", "scale")
        if entry["kind"] == "rff" and n_random and width_asked != "scale":
            assert float(width_asked) == entry["gamma"]
    check_names(header, n_inputs)
    return Model("classifier", n_inputs, classes=classes, forgets_by_examples=True)


def check_fixed(entry: Any, tensors: Tensors, width: int, n_classes: int) -> None:
    """Check weights without sums."""
    array(tensors, "weights", "f8", n_classes, width)
    weights = array(tensors, "class_weights", "f8", n_classes)
    examples = array(tensors, "class_examples", "i8", n_classes)
    assert (examples >= 0).all()
    assert sum(examples.tolist()) <= MOST_LEARNT
    assert ((weights > 0) == (examples > 0)).all()
    assert (weights >= 0).all()
    assert examples.any()
    assert type(entry["standardize"]) is bool
    assert type(entry["intercept"]) is bool
    assert type(entry.get("by_means", True)) is bool
    real(entry["penalty"])
    assert real(entry["temperature"]) > 0
    assert entry.get("scoring", "regression") in ("regression", "cosine")
    if "own_scores" in tensors:
        assert "scoring" in entry
        array(tensors, "own_scores", "f8", n_classes)


def check_selection(entry: Any, tensors: Tensors, n_classes: int) -> None:
    """Check what was selected, and what for."""
    if entry is None:
        return
    real(entry["penalty"])
    assert real(entry["recoding"]) <= 1
    assert real(entry["temperature"]) > 0
    real(entry["weight"])
    whole(entry["n_examples"], 0, 2**63 - 1)
    assert type(entry.get("by_means", True)) is bool
    wish = entry["wish"]
    required, later = {"penalty", "recoding", "standardize"}, {"rule", "blocks", "scoring"}
    assert required <= set(wish) <= required | later | {"n_random_blocks"}
    for name in ("penalty", "recoding"):
        assert wish[name] is None or real(wish[name]) >= 0
    assert type(wish["standardize"]) is bool
    assert wish.get("rule", "paper") in ("paper", "leave-one-out")
    assert wish.get("scoring", "regression") in ("regression", "cosine")
    blocks, used = wish.get("blocks", []), entry.get("blocks", [])
    assert isinstance(blocks, list)
    assert isinstance(used, list)
    for value in [*blocks, *used]:
        whole(value, 0, 2**63 - 1)
    assert not used or used[0] == 0
    assert used == sorted(set(used))
    assert all(block < len(blocks) for block in used)
    n_random_blocks = whole(wish.get("n_random_blocks", 0), 0, 2**63 - 1)
    assert not n_random_blocks or n_random_blocks < len(blocks)
    then = array(tensors, "selection.class_examples", "i8", None)
    assert len(then) <= n_classes
    assert (then >= 0).all()


READERS.update(dict.fromkeys(("RLSClassifier", "RebalancedRLSClassifier"), read_least_squares))
