"""Wrong input gets an error that says what was wrong and what is allowed; nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from evergrow import NCMForestClassifier
from tests.conftest import Arrays

GOOD_X = np.arange(40.0).reshape(20, 2)
GOOD_Y = np.arange(20) % 2


def with_value(value: float) -> np.ndarray[Any, Any]:
    X = GOOD_X.copy()
    X[3, 1] = value
    return X


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (with_value(np.nan), GOOD_Y, ValueError, "NaN"),
        (with_value(np.inf), GOOD_Y, ValueError, "infinity"),
        (with_value(1e308), GOOD_Y, ValueError, "too large"),
        (np.zeros((0, 2)), [], ValueError, "0 sample"),
        (np.zeros((20, 0)), GOOD_Y, ValueError, "0 feature"),
        (GOOD_X[:1], GOOD_Y[:1], ValueError, "1 sample"),
        (GOOD_X, GOOD_Y[:7], ValueError, "inconsistent numbers of samples"),
        (GOOD_X, [1, "a"] * 10, TypeError, "all strings or all numbers"),
        (GOOD_X, np.array([1, "a"] * 10, dtype=object), TypeError, "all strings or all numbers"),
        (GOOD_X, [b"a", "a"] * 10, TypeError, "all strings or all numbers"),
        (GOOD_X, ["a", None] * 10, TypeError, "none missing"),
        (GOOD_X, [None] * 20, TypeError, "none missing"),
        (GOOD_X, pd.Series(["a", pd.NA] * 10), TypeError, "none missing"),
        (GOOD_X, [0.0, np.nan] * 10, ValueError, "NaN"),
        (GOOD_X, GOOD_X[:, 0] / 7, ValueError, "continuous"),
        (GOOD_X, GOOD_X, ValueError, "1d array"),
        (scipy.sparse.csr_matrix(GOOD_X), GOOD_Y, TypeError, "dense"),
        (np.array([["a", "b"]] * 20), GOOD_Y, ValueError, "strings"),
        (GOOD_X[0], GOOD_Y, ValueError, "2D array"),
        (GOOD_X, None, ValueError, "requires y"),
    ],
)
def test_bad_training_data_is_refused_and_nothing_changes(
    X: Any, y: Any, error: type[Exception], message: str
) -> None:
    forest = NCMForestClassifier(3, min_samples_leaf=1, random_state=0).fit(GOOD_X, GOOD_Y)
    before, state = forest.predict_proba(GOOD_X), dict(vars(forest))
    with pytest.raises(error, match=message):
        forest.fit(X, y)
    assert vars(forest) == state
    np.testing.assert_array_equal(forest.predict_proba(GOOD_X), before)


@pytest.mark.parametrize("standardize", [True, False])
def test_a_value_far_outside_the_training_data_is_only_far_away(standardize: bool) -> None:
    forest = NCMForestClassifier(3, standardize=standardize, min_samples_leaf=1, random_state=0)
    forest.fit(GOOD_X, GOOD_X[:, 0] > 20)
    # The largest numbers there are; scaled, they would not fit single precision.
    assert forest.predict([[1e308, 1e308], [-1e308, -1e308]]).tolist() == [True, False]


@pytest.mark.parametrize("method", ["predict", "predict_proba", "apply", "comparisons"])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((4, 3)), "X has 3 features, but NCMForestClassifier is expecting 2"),
        (np.zeros((0, 2)), "0 sample"),
        (with_value(np.nan), "NaN"),
        (np.zeros(2), "2D array"),
    ],
)
def test_bad_queries_are_refused(method: str, X: Any, message: str) -> None:
    forest = NCMForestClassifier(3, min_samples_leaf=1, random_state=0).fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match=message):
        getattr(forest, method)(X)


@pytest.mark.parametrize(
    "use",
    [
        lambda forest: forest.predict(GOOD_X),
        lambda forest: forest.predict_proba(GOOD_X),
        lambda forest: forest.predict_top_k(GOOD_X, 2),
        lambda forest: forest.apply(GOOD_X),
        lambda forest: forest.comparisons(GOOD_X),
        lambda forest: forest.explain(GOOD_X[0]),
        lambda forest: forest.nbytes,
        lambda forest: forest.classes_,
        lambda forest: forest.save("nowhere"),
    ],
)
def test_unfitted_use_says_so(use: Any) -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        use(NCMForestClassifier())


@pytest.mark.parametrize(
    ("parameter", "value", "allowed"),
    [
        ("n_estimators", 0, "an integer from 1 to 65536"),
        ("n_estimators", 2.5, "an integer from 1 to 65536"),
        ("n_estimators", 2**70, "an integer from 1 to 65536"),
        ("n_estimators", True, "an integer from 1 to 65536"),
        ("n_centroids", 1, "an integer from 2 to 65535"),
        ("n_centroids", 1.5, r"a float in \(0, 1\]"),
        ("n_centroids", "root", r"one of \['log2', 'sqrt'\]"),
        ("n_assignments", 0, "'auto' or an integer from 1 to 1048576"),
        ("n_assignments", "all", "'auto' or an integer from 1 to 1048576"),
        ("n_subsets", 0, "an integer from 1 to 16384"),
        ("subset_scale", 0, r"a float in \(0, inf\)"),
        ("cost_weight", -0.1, r"a float in \[0, inf\)"),
        ("max_scoring_samples", 0, "None or an integer from 1 to 268435456"),
        ("min_samples_leaf", 0, "an integer from 1 to 268435456"),
        ("min_gain", -0.1, r"a float in \[0, inf\)"),
        ("min_gain", float("nan"), r"a float in \[0, inf\)"),
        ("min_gain", float("inf"), r"a float in \[0, inf\)"),
        ("min_gain", 10**400, r"a float in \[0, inf\)"),
        ("max_samples", 0.0, r"None or a float in \(0, 1\] or an integer from 1 to 268435456"),
        ("max_samples", 0, "an integer from 1"),
        ("bootstrap", "yes", "True or False"),
        ("standardize", None, "True or False"),
        ("n_jobs", 0, "None or an integer"),
        ("n_jobs", 2**62, "an integer from 1 to 32768"),
        ("n_jobs", 1.5, "None or an integer"),
        ("random_state", -1, "an integer from 0"),
        ("random_state", "seed", "an integer from 0"),
        ("verbose", -1, "an integer from 0"),
    ],
)
def test_each_parameter_is_checked_by_name_and_range(
    parameter: str, value: Any, allowed: str
) -> None:
    with pytest.raises(ValueError, match=rf"{parameter} must be .*{allowed}.*, got"):
        NCMForestClassifier(**{parameter: value}).fit(GOOD_X, GOOD_Y)


def test_every_parameter_has_a_rule() -> None:
    assert set(NCMForestClassifier._rules) == set(NCMForestClassifier().get_params())


def test_more_samples_per_tree_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match=r"max_samples must be at most .* 20, got 21"):
        NCMForestClassifier(max_samples=21).fit(GOOD_X, GOOD_Y)


def test_an_unusable_instruction_set_is_named(digits: Arrays) -> None:
    import os
    import subprocess
    import sys

    code = "import evergrow._core as core; core.chosen_kernel()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "EVERGROW_ISA": "mmx"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "EVERGROW_ISA must name" in done.stderr
