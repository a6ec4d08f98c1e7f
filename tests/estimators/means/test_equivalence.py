"""The same examples give the same model, in any order and split into any calls."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evergrow
from evergrow import NCMClassifier
from tests.budget import budget
from tests.estimators.means.cases import EXACT, METRICS, Array, assert_same, blobs, quick_metric

X, Y = blobs(200)
every_metric = pytest.mark.parametrize("name", METRICS)
every_exact = pytest.mark.parametrize("name", EXACT)


@every_exact
@settings(max_examples=budget(15))
@given(cuts=st.lists(st.integers(1, 199), max_size=8), seed=st.integers(0, 1000))
def test_any_split_in_any_order_is_all_at_once(name: str, cuts: list[int], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(200)
    model = METRICS[name]()
    for first, last in pairwise([0, *sorted(set(cuts)), 200]):
        rows = order[first:last]
        model.partial_fit(X[rows], Y[rows])
    assert_same(model, METRICS[name]().fit(X, Y), X)


@every_exact
def test_one_by_one_is_all_at_once(name: str) -> None:
    model = METRICS[name]()
    for x, label in zip(X, Y, strict=True):
        model.partial_fit(x[None], [label])
    assert_same(model, METRICS[name]().fit(X, Y), X)


def test_a_learnt_metric_stays_while_means_change() -> None:
    model = NCMClassifier(metric=quick_metric()).partial_fit(X[:100], Y[:100])
    components = model.metric_.components_
    model.partial_fit(X[100:], Y[100:])
    assert model.metric_.components_ is components
    np.testing.assert_allclose(model.means_, NCMClassifier().fit(X, Y).means_, rtol=1e-12)


@every_metric
@pytest.mark.parametrize("step", [1, 7, 100])
def test_forgotten_examples_were_never_learnt(name: str, step: int) -> None:
    model = METRICS[name]().fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    for first in range(100, 200, step):
        rows = slice(first, min(first + step, 200))
        model.forget(X[rows], Y[rows])
    assert_same(model, METRICS[name]().fit(X[:100], Y[:100]), X)


@every_metric
def test_a_class_whose_examples_are_forgotten_keeps_its_column_and_is_not_predicted(
    name: str,
) -> None:
    model = METRICS[name]().fit(X, Y)
    gone = Y == 1
    model.forget(X[gone], Y[gone])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert (model.predict_proba(X)[:, 1] == 0).all()
    assert (model.decision_function(X)[:, 1] == -np.inf).all()
    assert (model.predict_top_k(X, 4)[:, 3] == 1).all()
    assert np.isnan(model.means_[1]).all()
    if name != "learnt":
        kept = METRICS[name]().fit(X[~gone], Y[~gone])
        assert_same(model.forget(classes=[1]), kept, X)


@every_metric
def test_a_listed_class_gets_its_column_and_is_not_predicted(name: str) -> None:
    model = METRICS[name]().partial_fit(X, Y, classes=[9, 2])
    assert model.classes_.tolist() == [0, 1, 2, 3, 9]
    assert (model.predict_proba(X)[:, 4] == 0).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert set(model.predict(X)) <= {0, 1, 2, 3}
    model.partial_fit(X[:1] + 50, [9])
    assert model.predict(X[:1] + 50).tolist() == [9]


@pytest.mark.parametrize("name", ["euclidean", "mahalanobis per class"])
def test_a_forgotten_class_leaves_no_trace(name: str) -> None:
    model = METRICS[name]().fit(X, Y).forget(classes=[2])
    assert model.classes_.tolist() == [0, 1, 3]
    assert_same(model, METRICS[name]().fit(X[Y != 2], Y[Y != 2]), X)


def test_a_forgotten_class_leaves_a_learnt_metric_as_it_was() -> None:
    model = METRICS["learnt"]().fit(X, Y)
    before = model.decision_function(X)
    after = model.forget(classes=[2]).decision_function(X)
    kept = before[:, [0, 1, 3]]
    np.testing.assert_allclose(after - after[:, :1], kept - kept[:, :1], rtol=1e-9, atol=1e-9)


@every_exact
def test_a_merged_model_is_one_trained_on_all_examples(name: str) -> None:
    here, there = Y < 2, Y >= 1
    ours = METRICS[name]().fit(X[here], Y[here])
    theirs = METRICS[name]().fit(X[there], Y[there])
    ours.merge(theirs)
    both = METRICS[name]().fit(X[here], Y[here]).partial_fit(X[there], Y[there])
    assert ours.classes_.tolist() == [0, 1, 2, 3]
    assert theirs.classes_.tolist() == [1, 2, 3]
    assert_same(ours, both, X)


def test_models_with_one_learnt_metric_can_be_merged(tmp_path: Path) -> None:
    ours = METRICS["learnt"]().fit(X[:100], Y[:100])
    ours.save(tmp_path / "model.evergrow")
    theirs = evergrow.load(tmp_path / "model.evergrow")
    theirs.partial_fit(X[100:], Y[100:]).forget(X[:100], Y[:100])
    ours.merge(theirs)
    np.testing.assert_allclose(ours.means_, NCMClassifier().fit(X, Y).means_, rtol=1e-9)


@every_exact
def test_a_weight_counts_as_repetition(name: str) -> None:
    weights = np.random.default_rng(0).integers(0, 4, 200)
    weighted = METRICS[name]().fit(X, Y, weights)
    repeated = METRICS[name]().fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-9)
    np.testing.assert_allclose(
        weighted.predict_log_proba(X), repeated.predict_log_proba(X), rtol=1e-9, atol=1e-9
    )


@every_metric
def test_a_weight_of_zero_counts_as_absence(name: str) -> None:
    weights = (Y != 3) * (np.arange(200) % 3 > 0)
    kept = weights > 0
    weighted = METRICS[name]().fit(X, Y, weights)
    assert weighted.classes_.tolist() == [0, 1, 2]
    assert_same(weighted, METRICS[name]().fit(X[kept], Y[kept]), X)


@every_exact
def test_weights_can_be_forgotten(name: str) -> None:
    weights = np.random.default_rng(0).uniform(0.1, 3.0, 200)
    model = METRICS[name]().fit(X, Y, weights)
    model.forget(X[:90], Y[:90], sample_weight=weights[:90])
    assert_same(model, METRICS[name]().fit(X[90:], Y[90:], weights[90:]), X)


@every_metric
def test_saving_does_not_change_the_model(name: str, tmp_path: Path) -> None:
    kept = METRICS[name]().fit(X[:100], Y[:100] % 3).partial_fit(X[100:103], Y[100:103])
    kept.save(tmp_path / "model.evergrow")
    loaded = evergrow.load(tmp_path / "model.evergrow")
    np.testing.assert_array_equal(loaded.predict_proba(X), kept.predict_proba(X))
    for model in (kept, loaded):
        model.partial_fit(X[150:], Y[150:] + 5).forget(X[:20], Y[:20] % 3)
    assert loaded.classes_.tolist() == kept.classes_.tolist()
    assert_same(loaded, kept, X)


@every_metric
@settings(max_examples=budget(10))
@given(batches=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=9), min_size=2))
def test_columns_never_move(name: str, batches: list[list[int]]) -> None:
    random = np.random.default_rng(0)
    model, seen = METRICS[name](), []
    for batch in batches:
        model.partial_fit(random.normal(size=(len(batch), 3)), batch)
        seen += sorted(set(batch) - set(seen))
        assert model.classes_.tolist() == seen


@every_metric
def test_renamed_classes_join_with_their_examples(name: str) -> None:
    model = METRICS[name]().fit(X, Y).rename_classes({0: 7, 3: 7})
    assert model.classes_.tolist() == [7, 1, 2]
    joined = np.where((Y == 0) | (Y == 3), 7, Y)
    if name == "learnt":
        expected = NCMClassifier().fit(X, joined).means_[[2, 0, 1]]
        np.testing.assert_allclose(model.means_, expected, rtol=1e-9)
    else:
        assert_same(model, METRICS[name]().fit(X, joined), X)


@every_exact
@pytest.mark.parametrize(
    "make",
    [
        lambda X: X.astype(np.float32),
        lambda X: X.astype(np.float16),
        lambda X: X.astype(np.int16),
        np.asfortranarray,
        lambda X: X[:, ::-1][:, ::-1],
        lambda X: X.tolist(),
    ],
    ids=["float32", "float16", "int16", "fortran", "strided", "lists"],
)
def test_the_same_numbers_in_any_form_give_the_same_model(name: str, make: Any) -> None:
    whole: Array = np.rint(X * 4)
    found = METRICS[name]().fit(make(whole), Y)
    assert_same(found, METRICS[name]().fit(whole, Y), whole)
    np.testing.assert_allclose(
        found.predict_proba(make(whole)), found.predict_proba(whole), rtol=1e-12
    )


def test_memory_mapped_data_in_many_blocks_are_learnt(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(3000, 1000)).astype(np.float32)
    labels = np.arange(3000) % 3
    np.save(tmp_path / "X.npy", rows)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = NCMClassifier().fit(mapped, labels)
    expected = [rows[labels == c].mean(axis=0, dtype=np.float64) for c in range(3)]
    np.testing.assert_allclose(model.means_, expected, rtol=1e-9, atol=1e-12)
    model.forget(mapped[:2000], labels[:2000])
    assert model.class_counts_.tolist() == [333, 333, 334]


@pytest.mark.parametrize("named", [0, 1])
def test_a_model_without_feature_names_merges_with_one_that_has_some(named: int) -> None:
    X, y = blobs()
    frame = pd.DataFrame(X, columns=list("abcde"))
    parts: list[Any] = [X, X]
    parts[named] = frame
    ours, theirs = (NCMClassifier().fit(part, y) for part in parts)
    ours.merge(theirs)
    assert ours.class_counts_.sum() == 2 * len(X)
    assert hasattr(ours, "feature_names_in_") == (named == 0)
