"""What the kinds of forests do not share: their parameters and their explanations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow import (
    AxisForestClassifier,
    LinearForestClassifier,
    NCMForestClassifier,
    SVMForestClassifier,
)
from evergrow.estimators import AxisDecision, LinearDecision, NCMDecision, SVMs
from evergrow.estimators.forest.strategy import STRATEGIES
from tests.conftest import FORESTS, Arrays
from tests.estimators.forest.blobs import strategies_of
from tests.estimators.model_files import reload

GOOD_X = np.arange(40.0).reshape(20, 2)
GOOD_Y = np.arange(20) % 2
DECISIONS = {
    NCMForestClassifier: NCMDecision,
    AxisForestClassifier: AxisDecision,
    LinearForestClassifier: LinearDecision,
    SVMForestClassifier: LinearDecision,
}


@pytest.mark.parametrize("kind", FORESTS)
def test_the_default_update_is_one_the_kind_knows(kind: Any) -> None:
    assert set(strategies_of(kind)) <= set(STRATEGIES)
    assert kind().update in strategies_of(kind)
    assert ("rust" in strategies_of(kind)) == (kind is NCMForestClassifier)


@pytest.mark.parametrize("kind", [AxisForestClassifier, LinearForestClassifier])
@pytest.mark.parametrize("n_candidates", ["log2", 0.5, 3, 200])
def test_candidates_may_be_named_a_share_or_a_number(
    kind: Any, n_candidates: Any, digits: Arrays
) -> None:
    X, X_test, y, y_test = digits
    forest = kind(10, splits=kind._kinds[0](n_candidates), random_state=0).fit(X, y)
    assert forest.score(X_test, y_test) > 0.8


@pytest.mark.parametrize("regularization", [1e-4, 0.1, 100.0, 1e30])
def test_any_regularization_learns(regularization: float, digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    forest = SVMForestClassifier(5, splits=SVMs(regularization=regularization), random_state=0).fit(
        X, y
    )
    assert forest.score(X_test, y_test) > 0.9


@pytest.mark.parametrize("kind", FORESTS)
def test_a_saved_forest_predicts_and_explains_the_same(
    kind: Any, digits: Arrays, tmp_path: Any
) -> None:
    X, X_test, y, _ = digits
    forest = kind(4, random_state=0).fit(X, y)
    for inference_only in (False, True):
        loaded = reload(forest, tmp_path, inference_only=inference_only)
        assert type(loaded) is kind
        assert loaded.get_params() == forest.get_params()
        np.testing.assert_array_equal(loaded.predict_proba(X_test), forest.predict_proba(X_test))
        np.testing.assert_array_equal(loaded.apply(X_test), forest.apply(X_test))
        assert loaded.n_features_in_ == 64
        assert loaded.explain(X_test[0]) == forest.explain(X_test[0])


@pytest.mark.parametrize("kind", FORESTS)
def test_one_row_and_a_batch_take_the_same_way(kind: Any, digits: Arrays) -> None:
    X, X_test, y, _ = digits
    forest = kind(4, random_state=0).fit(X, y)
    batch = forest.predict_proba(X_test)
    rows = np.concatenate([forest.predict_proba(row[None]) for row in X_test])
    np.testing.assert_array_equal(rows, batch)


@pytest.mark.parametrize("kind", FORESTS)
def test_training_rows_end_in_the_leaves_that_hold_them(kind: Any, digits: Arrays) -> None:
    X, _, y, _ = digits
    forest = kind(3, random_state=0).fit(X, y)
    leaves = forest.apply(X)
    for tree in range(3):
        arrays = forest._fitted.forest.tree_arrays(tree)
        for leaf in np.flatnonzero(arrays["left"] == -1):
            first = arrays["row_begin"][leaf]
            held = arrays["rows"][first : first + arrays["row_size"][leaf]]
            np.testing.assert_array_equal(np.flatnonzero(leaves[:, tree] == leaf), np.sort(held))


@pytest.mark.parametrize("kind", FORESTS)
def test_an_explanation_has_the_decisions_of_its_kind(kind: Any, digits: Arrays) -> None:
    X, X_test, y, _ = digits
    forest = kind(4, random_state=0).fit(X, y)
    paths = forest.explain(X_test[0]).trees
    assert [path.leaf for path in paths] == forest.apply(X_test[:1])[0].tolist()
    with pytest.raises(ValueError, match="explain takes one sample, got 2"):
        forest.explain(X_test[:2])
    assert all(type(step) is DECISIONS[kind] for path in paths for step in path.decisions)


@pytest.mark.parametrize("standardize", [True, False])
def test_an_axis_decision_has_value_and_threshold_in_the_units_of_the_input(
    standardize: bool,
) -> None:
    X = np.array([[100.0], [200.0], [800.0], [900.0]])
    forest = AxisForestClassifier(
        20, min_samples_leaf=2, standardize=standardize, random_state=0
    ).fit(X, ["a", "a", "b", "b"])
    for path in forest.explain([850.0]).trees:
        (step,) = path.decisions
        assert (step.feature, step.value, step.goes) == (0, 850.0, "right")
        assert 199.9 < step.threshold < 800.1
        assert str(step) == f"node 0: feature 0 is 850, above {step.threshold:.3g}, goes right"
    assert "not above" in str(forest.explain([150.0]))


def test_a_linear_decision_has_the_distance_from_the_hyperplane() -> None:
    X = np.array([[-3.0], [-1.0], [1.0], [3.0]])
    forest = SVMForestClassifier(1, min_samples_leaf=2, random_state=0).fit(X, [0, 0, 1, 1])
    scale = np.sqrt(5.0)  # standard deviation
    (near,) = forest.explain([0.5]).trees[0].decisions
    (far,) = forest.explain([-4.0]).trees[0].decisions
    assert near.distance == pytest.approx(0.5 / scale, abs=0.15)
    assert near.distance + far.distance == pytest.approx(4.5 / scale, rel=1e-5)
    assert {near.goes, far.goes} == {"left", "right"}
    assert str(far) == f"node 0: {far.distance:.3g} from the hyperplane, goes {far.goes}"
