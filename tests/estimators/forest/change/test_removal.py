"""Forgotten classes and samples leave the counts, nodes, memory and files of a forest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from evergrow import NCMForestClassifier
from evergrow.estimators import Bootstrap
from evergrow.storage.models.format import read_model
from tests.budget import budget
from tests.conftest import FORESTS, Arrays
from tests.estimators.forest.blobs import CASES, blobs, leaf_counts, stored_ids
from tests.reference.ncm_forest import to_bytes

X_QUERY, _ = blobs(80, range(5), seed=77)
X, Y = blobs(200, range(5))


def trained(kind: Any, update: str | None = None, **options: Any) -> Any:
    """A forest of five classes, in two batches of 120 and 80 samples."""
    options = {"min_samples_leaf": 2, "random_state": 0, **options}
    forest = kind(4, **options)
    if update is not None:
        forest.set_params(update=update)
    return forest.fit(X[:120], Y[:120]).partial_fit(X[120:], Y[120:])


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_a_forgotten_class_loses_its_column_and_the_others_keep_their_order(
    kind: Any, update: str
) -> None:
    forest = trained(kind, update).forget(classes=[3, 1])
    forest._fitted.forest.check()
    assert forest.classes_.tolist() == [0, 2, 4]
    assert forest.predict_proba(X_QUERY).shape == (80, 3)
    assert forest.predict_proba(X_QUERY).sum(axis=1) == pytest.approx(1.0)
    left = np.isin(Y, [0, 2, 4])
    assert forest.score(X[left], Y[left]) > 0.95


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_leaves_count_what_is_left_of_each_class(kind: Any, update: str) -> None:
    forest = trained(kind, update).forget(classes=[2])
    for tree in range(4):
        expected = [int(n) for n in np.bincount(Y)[[0, 1, 3, 4]]]
        assert leaf_counts(forest, tree).tolist() == expected


def test_no_node_names_a_forgotten_class() -> None:
    forest = trained(NCMForestClassifier, "rust").forget(classes=[4])
    for tree in range(4):
        arrays = forest._fitted.forest.tree_arrays(tree)
        assert set(arrays["centroid_class"]) <= {0, 1, 2, 3}
        assert set(arrays["count_class"]) == {0, 1, 2, 3}


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("inference_only", [True, False])
def test_a_file_holds_no_sample_of_a_forgotten_class(
    kind: Any, inference_only: bool, tmp_path: Path
) -> None:
    forest = trained(kind)
    scale = forest._fitted.standardization
    gone = ((X[Y == 1] - scale.mean) / scale.scale).astype(np.float32)
    forest.forget(classes=[1]).save(tmp_path / "forest", inference_only=inference_only)
    header, tensors = read_model(tmp_path / "forest")
    assert header["fitted"]["labels"]["values"] == [0, 2, 3, 4]
    if not inference_only:
        assert sorted(tensors["samples.ids"]) == np.flatnonzero(Y != 1).tolist()
    for row in gone:
        rows = tensors["samples.rows"].astype(np.float64)
        assert np.abs(rows - row).max(axis=1, initial=0).min(initial=1) > 1e-3
        for tree in range(4):
            if kind is not NCMForestClassifier:
                continue
            stored = {vector.tobytes() for vector in tensors[f"tree.{tree}.bytes"]}
            assert to_bytes(row)[0].tobytes() not in stored


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_forgotten_samples_are_not_counted_and_not_stored(kind: Any, update: str) -> None:
    forest = trained(kind, update)
    gone = np.arange(0, 200, 3)
    forest.forget(samples=gone)
    forest._fitted.forest.check()
    left = np.setdiff1d(np.arange(200), gone)
    assert stored_ids(forest).tolist() == left.tolist()
    for tree in range(4):
        assert leaf_counts(forest, tree).tolist() == np.bincount(Y[left]).tolist()


def test_the_ids_of_the_last_call_lead_to_its_samples() -> None:
    forest = trained(NCMForestClassifier)
    assert forest.sample_ids_.tolist() == list(range(120, 200))
    forest.forget(samples=forest.sample_ids_)
    assert stored_ids(forest).tolist() == list(range(120))


def test_ids_are_never_given_twice() -> None:
    forest = trained(NCMForestClassifier).forget(samples=range(150, 200))
    assert forest.sample_ids_.max() < 150
    assert forest.partial_fit(X[:5], Y[:5]).sample_ids_.tolist() == list(range(200, 205))


def test_classes_and_samples_may_go_together() -> None:
    forest = trained(NCMForestClassifier)
    forest.forget(classes=[0], samples=np.flatnonzero(Y <= 1)[:20])
    assert forest.classes_.tolist() == [1, 2, 3, 4]
    assert (
        forest.update_report_.n_samples
        == ((Y == 0) | np.isin(np.arange(200), np.flatnonzero(Y <= 1)[:20])).sum()
    )


def test_a_class_whose_samples_are_all_forgotten_keeps_its_column() -> None:
    forest = trained(NCMForestClassifier).forget(samples=np.flatnonzero(Y == 2))
    assert forest.classes_.tolist() == [0, 1, 2, 3, 4]
    assert forest.predict_proba(X_QUERY)[:, 2].max() == 0.0


def test_an_id_given_twice_counts_once() -> None:
    forest = trained(NCMForestClassifier).forget(samples=[7, 7, 7, 9])
    assert forest.update_report_.n_samples == 2


@pytest.mark.parametrize("nothing", [{"classes": []}, {"samples": []}])
def test_forgetting_nothing_changes_no_answer(nothing: dict[str, Any]) -> None:
    forest = trained(NCMForestClassifier)
    before = forest.predict_proba(X_QUERY)
    np.testing.assert_array_equal(forest.forget(**nothing).predict_proba(X_QUERY), before)


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        ({}, ValueError, "classes, samples, or both"),
        ({"samples": [3, 200, 7000]}, ValueError, "not stored: 200, 7000;"),
        ({"samples": range(190, 300)}, ValueError, "200, 201, 202, 203, 204 and 95 more"),
        ({"samples": [-1]}, ValueError, "not stored: -1"),
        ({"samples": [1.0]}, ValueError, "integer ids"),
        ({"samples": [True]}, ValueError, "integer ids"),
        ({"samples": ["1"]}, ValueError, "integer ids"),
        ({"samples": [[1, 2]]}, ValueError, "integer ids"),
        ({"samples": {1, 2}}, ValueError, "integer ids"),
        ({"samples": [2**70]}, ValueError, "integer ids"),
        ({"samples": range(200)}, ValueError, "would leave no samples"),
        ({"classes": range(5)}, ValueError, "would leave no samples"),
        ({"classes": [1, 8]}, ValueError, "unknown class 8; the model knows 0, 1, 2"),
        ({"classes": ["1"]}, ValueError, "unknown class '1': did you mean 1"),
        ({"classes": [1, "a"]}, TypeError, "all strings or all numbers"),
        ({"classes": {1}}, TypeError, "got set"),
        ({"classes": [[1]]}, TypeError, "got list"),
    ],
    ids=str,
)
def test_what_cannot_be_forgotten_is_named_and_nothing_changes(
    what: dict[str, Any], error: type[Exception], message: str
) -> None:
    forest = trained(NCMForestClassifier)
    state = dict(vars(forest))
    with pytest.raises(error, match=message):
        forest.forget(**what)
    assert vars(forest) == state


def test_a_sample_cannot_be_forgotten_twice() -> None:
    forest = trained(NCMForestClassifier).forget(samples=[5])
    with pytest.raises(ValueError, match="not stored: 5;"):
        forest.forget(samples=[5])


def test_a_new_estimator_has_nothing_to_forget() -> None:
    with pytest.raises(NotFittedError, match="samples to forget"):
        NCMForestClassifier().forget(samples=[0])


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_a_forgotten_class_can_be_learnt_again(kind: Any, update: str) -> None:
    forest = trained(kind, update).forget(classes=[1])
    forest.partial_fit(X[Y == 1], Y[Y == 1])
    forest._fitted.forest.check()
    assert forest.classes_.tolist() == [0, 2, 3, 4, 1]
    for tree in range(4):
        assert leaf_counts(forest, tree).tolist() == np.bincount(Y)[[0, 2, 3, 4, 1]].tolist()


@pytest.mark.parametrize("kind", FORESTS)
def test_an_early_forest_without_samples_is_the_forest_of_the_others(kind: Any) -> None:
    x, y = X[:45], Y[:45]
    forest = kind(4, min_samples_leaf=2, random_state=0).fit(x, y)
    forest.forget(samples=range(10), classes=[1])
    left = (np.arange(45) >= 10) & (y != 1)
    whole = kind(4, min_samples_leaf=2, random_state=0).fit(x[left], y[left])
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), whole.predict_proba(X_QUERY))
    np.testing.assert_array_equal(forest.partial_fit(X[45:], Y[45:]).classes_, [*whole.classes_, 1])


def test_ids_that_were_handed_out_may_be_changed() -> None:
    forest = NCMForestClassifier(2, random_state=0).fit(X[:30], Y[:30])
    forest.sample_ids_[:] = 0
    forest.partial_fit(X[30:40], Y[30:40]).forget(samples=[29])
    assert stored_ids(forest).tolist() == [*range(29), *range(30, 40)]


@pytest.mark.parametrize("n", [30, 120])
def test_forgetting_keeps_the_number_of_trees(n: int) -> None:
    forest = NCMForestClassifier(2, random_state=0).fit(X[:n], Y[:n])
    forest.set_params(n_estimators=5).forget(samples=[0])
    assert forest.apply(X_QUERY).shape == (80, 2)


@pytest.mark.parametrize("kind", FORESTS)
def test_the_others_are_known_as_well_as_before(kind: Any, digits: Arrays) -> None:
    X_train, X_test, y_train, y_test = digits
    forest = kind(10, random_state=0).fit(X_train, y_train).forget(classes=[8, 1])
    left, left_test = ~np.isin(y_train, [1, 8]), ~np.isin(y_test, [1, 8])
    whole = kind(10, random_state=0).fit(X_train[left], y_train[left])
    expected = whole.score(X_test[left_test], y_test[left_test])
    assert forest.score(X_test[left_test], y_test[left_test]) > expected - 0.04


@settings(max_examples=budget(30))
@given(st.sets(st.integers(0, 199), max_size=195), st.sampled_from(CASES), st.booleans())
def test_counts_are_exact_whatever_is_forgotten(gone: set[int], case: Any, boot: bool) -> None:
    forest = trained(*case, max_samples=Bootstrap() if boot else None).forget(samples=sorted(gone))
    forest._fitted.forest.check()
    left = np.setdiff1d(np.arange(200), sorted(gone))
    assert stored_ids(forest).tolist() == left.tolist()
    if not boot:
        assert leaf_counts(forest, 0).tolist() == np.bincount(Y[left], minlength=5).tolist()


@pytest.mark.parametrize("arguments", [(X[:2], Y[:2]), ([0],)])
def test_examples_or_names_by_position_are_refused_with_what_is_possible(arguments: Any) -> None:
    forest = NCMForestClassifier(2, random_state=0).fit(X, Y)
    with pytest.raises(TypeError, match=r"needs classes= or samples= .* by name: a forest"):
        forest.forget(*arguments)
    assert len(forest.stored_ids_) == len(X)
