"""Forests, of classes and of coarse and fine classes."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

import evergrow
from evergrow.estimators.forest.strategy import STRATEGIES, strategy_from_json
from evergrow.estimators.subcategory.guess.registry import guesser_from_json
from evergrow.estimators.subcategory.methods import METHODS
from tests.reference.flat_tree import is_tree
from tests.reference.model_files.content import (
    READERS,
    Header,
    Model,
    Tensors,
    array,
    built,
    check_names,
    estimator_class,
    labels_of,
    number,
    parameters_of,
    real,
    whole,
)

TREE_TYPES = dict.fromkeys(
    ("left", "centroid_begin", "centroid_size", "count_begin", "count_size", "row_begin",
     "row_size", "centroid_class", "centroid_source", "count_class", "count", "rows"), "i4"
) | {"half_norm": "f4", "side": "u1", "exponent": "i1"}  # fmt: skip


def read_forest(header: Header, tensors: Tensors) -> Model:
    """Check a forest."""
    kind = estimator_class(header)
    classes = labels_of(header["classes"])
    n_features = check_forest(header, tensors, len(classes), kind._proposer)[0]
    built(kind, {"balance": 0.0, **forest_parameters(header)})
    check_names(header, n_features)
    return Model("classifier", n_features, classes=classes)


def forest_parameters(header: Header) -> Header:
    """The parameters of a forest, with update strategies and class weights in place."""
    parameters = parameters_of(header)
    assert parameters.get("memory") is None
    if isinstance(parameters.get("update"), dict):
        assert parameters["update"]["name"] in STRATEGIES
        parameters["update"] = strategy_from_json(parameters["update"])
    pairs = parameters.get("class_weight")
    if isinstance(pairs, list):
        assert all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
        assert all(isinstance(name, (str, int, float)) for name, _ in pairs)
        parameters["class_weight"] = dict(pairs)
    return parameters


def check_forest(
    header: Header, tensors: Tensors, n_classes: int, proposer: str
) -> tuple[int, set[int]]:
    """Check trees, samples and history; the number of features and the ids of the samples."""
    assert header["proposer"] == proposer
    n_features = check_scaling(header, tensors)
    comparisons = array(tensors, "n_comparisons", "i8", None)
    assert len(comparisons)
    assert ((comparisons >= 0) & (comparisons < 1 << 53)).all()
    codes, ids = check_samples(tensors, n_features, n_classes)
    trees: dict[str, Tensors] = {}
    for name, values in tensors.items():
        if name.split(".")[0] == "tree":
            _, tree, part = (*name.split(".", 2), "", "")[:3]
            trees.setdefault(tree, {})[part] = values
    assert set(trees) == {str(t) for t in range(len(comparisons))}
    has_rows = [check_tree(t, proposer, n_features, n_classes, codes) for t in trees.values()]
    early = check_early(tensors, n_features, n_classes)
    check_history(header.get("history"), tensors, len(trees), n_classes)
    if any(has_rows):
        assert all(one < header["history"]["n_seen"] for one in ids)
    assert not early or sorted(early) == sorted(ids)
    weights = tensors.get("balance_weights")
    if weights is not None:
        assert (array(tensors, "balance_weights", "f8", None) > 0).all()
        assert len(weights) <= n_classes
    return n_features, set(ids)


def check_scaling(header: Header, tensors: Tensors) -> int:
    """Check the transform of the features; their number."""
    kind = header.get("standardize", "scale")
    assert kind in ("whiten", "scale", "none")
    n_features = len(array(tensors, "mean", "f8", None))
    assert n_features
    assert (array(tensors, "scale", "f8", n_features) > 0).all()
    assert ("whitening" in tensors) == (kind == "whiten")
    if kind == "whiten":
        whitening = array(tensors, "whitening", "f4", n_features, n_features)
        assert all(whitening[k, k] > 0 for k in range(n_features))
        assert all(not whitening[k, k + 1 :].any() for k in range(n_features))
    if "length_features" in tensors:
        assert (array(tensors, "length_features", "u1", n_features) <= 1).all()
    return n_features


def check_samples(tensors: Tensors, n_features: int, n_classes: int) -> tuple[Any, list[int]]:
    """Check the stored samples; their classes and ids."""
    rows = tensors["samples.rows"]
    array(tensors, "samples.rows", "f2" if rows.dtype == "f2" else "f4", None, n_features)
    codes = array(tensors, "samples.classes", "i4", len(rows))
    assert ((codes >= 0) & (codes < n_classes)).all()
    ids = array(tensors, "samples.ids", "i8", len(rows)).tolist()
    assert len(set(ids)) == len(ids)
    assert all(one >= 0 for one in ids)
    check_weights(tensors, "samples.weights", len(rows))
    return codes, ids


def check_weights(tensors: Tensors, name: str, n_rows: int) -> None:
    """Check weights of samples, if there are any."""
    if name in tensors:
        weights = array(tensors, name, "f4", n_rows)
        assert ((weights >= 0) & (weights <= 1 << 28)).all()


def check_early(tensors: Tensors, n_features: int, n_classes: int) -> list[int]:
    """Check the samples from before the features were measured; their ids."""
    if "early.X" not in tensors:
        return []
    rows = array(tensors, "early.X", "f8", None, n_features)
    codes = array(tensors, "early.codes", "i4", len(rows))
    assert ((codes >= 0) & (codes < n_classes)).all()
    check_weights(tensors, "early.weights", len(rows))
    return cast("list[int]", array(tensors, "early.ids", "i8", len(rows)).tolist())


def check_tree(tree: Tensors, proposer: str, n_features: int, n_classes: int, codes: Any) -> bool:
    """Check one tree; whether it lists the samples of its leaves."""
    assert ("halves" in tree) != ("bytes" in tree)
    name, dtype = ("halves", "f2") if "halves" in tree else ("bytes", "i1")
    vectors = array(tree, name, dtype, None, n_features)
    tree = dict(tree)
    if name == "halves" and "exponent" not in tree:
        tree["exponent"] = np.zeros(len(tree["side"]), np.int8)
    if "rows" not in tree:
        nothing = np.zeros(len(tree["left"]), np.int32)
        tree |= {"rows": nothing[:0], "row_begin": nothing, "row_size": nothing}
    for part, kind in TREE_TYPES.items():
        assert tree[part].dtype == kind
        assert tree[part].ndim == 1
    assert is_tree(
        tree,
        {"ncm": "ncm", "axis": "axis"}.get(proposer, "linear"),
        n_classes=n_classes,
        n_features=n_features,
        row_classes=codes,
        n_slots=len(vectors),
        slot_bytes=16 * -(-n_features // 16) * vectors.dtype.itemsize,
    )
    return bool((tree["row_size"] > 0).any())


def check_history(entry: Any, tensors: Tensors, n_trees: int, n_classes: int) -> None:
    """Check counters, and the ages of trees and classes."""
    for name in ("seed", "n_updates", "n_seen"):
        whole(entry[name], 0, 2**63 - 1)
    for name in ("n_measured", "n_measured_classes"):
        whole(entry.get(name, 0), 0, 2**63 - 1)
    assert 0 < number(entry["row_rate"]) < 2**32
    assert 0 <= number(entry["refresh_due"]) < 2**53
    assert 0 < number(entry.get("weight_unit", 1.0)) < math.inf
    float(entry.get("weight_unit", 1.0))
    if {"ages.taught", "ages.came"} & set(tensors):
        for name, size in (("ages.taught", n_trees), ("ages.came", n_classes)):
            ages = array(tensors, name, "i8", size)
            assert ((ages >= -1) & (ages <= entry["n_updates"])).all()


def read_subcategories(header: Header, tensors: Tensors) -> Model:
    """Check a forest of coarse and fine classes."""
    depths, columns, bare = check_hierarchy(header["hierarchy"])
    n_classes, n_coarse = len(depths), depths.count(0)
    assert header["method"] in METHODS
    own = {name: values for name, values in tensors.items() if not name.startswith("first/")}
    n_features, ids = check_forest(header, own, n_classes, "ncm")
    n_inputs = n_features
    if METHODS[header["method"]].is_stacked:
        n_inputs = check_stack(header["stack"], tensors, n_coarse)
        assert n_features == n_inputs + n_coarse
    unconfirmed = array(own, "unconfirmed.ids", "i8", None).tolist()
    coarse = array(own, "unconfirmed.coarse", "i4", len(unconfirmed)).tolist()
    assert unconfirmed == sorted(set(unconfirmed))
    assert set(unconfirmed) <= ids
    assert set(coarse) <= bare
    parameters = forest_parameters(header)
    if "guess" in parameters:
        parameters["guess"] = guesser_from_json(parameters["guess"])
    built(evergrow.SubcategoryForestClassifier, parameters)
    check_names(header, n_inputs)
    return Model("subcategories", n_inputs, classes=columns)


def check_hierarchy(entry: Any) -> tuple[list[int], list[int], set[int]]:
    """Check a tree of classes.

    Returns the levels of the classes, their columns, and the classes that samples may have without
    a finer one.
    """
    parents, columns = entry["parents"], entry["columns"]
    levels = [entry["coarse"], entry.get("fine"), *entry.get("deeper", [])]
    assert isinstance(parents, list)
    assert isinstance(columns, list)
    assert isinstance(entry.get("deeper", []), list)
    sizes = [0 if level is None and k == 1 else len(labels_of(level))
             for k, level in enumerate(levels)]  # fmt: skip
    n = len(parents)
    assert all(whole(c, 0, 2**31 - 1) < n for c in [*parents, *columns])
    assert len(set(columns)) == len(columns)
    depths = []
    for c in range(n):
        path = [c]
        while parents[path[-1]] != path[-1]:
            path.append(parents[path[-1]])
            assert len(path) <= n
        depths.append(len(path) - 1)
    while sizes[-1] == 0 and len(sizes) > 1:
        sizes.pop()
    assert [depths.count(k) for k in range(len(sizes))] == sizes
    assert all(depth < len(sizes) for depth in depths)
    has_children = {parents[c] for c in range(n) if parents[c] != c}
    assert {c for c in range(n) if c not in has_children} <= set(columns)
    return depths, columns, has_children | {c for c in range(n) if depths[c] == 0}


def check_stack(entry: Any, tensors: Tensors, n_coarse: int) -> int:
    """Check the first of two forests and what lies between them; its number of features."""
    real(entry["scale"])
    assert type(entry.get("learns_all", False)) is bool
    for name in ("n_learnt", "n_grown"):
        whole(entry.get(name, 0), 0, 2**53 - 1)
    arrays = {n[len("first/") :]: a for n, a in tensors.items() if n.startswith("first/")}
    n_features = check_forest(entry["first"], arrays, n_coarse, "ncm")[0]
    array(tensors, "stack.mean", "f8", n_features)
    assert (array(tensors, "stack.scale", "f8", n_features) > 0).all()
    return n_features


READERS.update(
    dict.fromkeys(
        (
            "AxisForestClassifier",
            "LinearForestClassifier",
            "NCMForestClassifier",
            "SVMForestClassifier",
        ),
        read_forest,
    )
)
READERS["SubcategoryForestClassifier"] = read_subcategories
