"""Forests through their public interface."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from evergrow import NCMForestClassifier
from evergrow.estimators import Bootstrap, ClassMeans, Regularised, Storage
from tests.conftest import ACCURACY, FORESTS, Arrays

# Exceptions of scikit-learn's own bagging too.
DRAWN_BY_WEIGHT = {"check_sample_weight_equivalence_on_dense_data": "trees draw samples by weight"}
every_kind = pytest.mark.parametrize("kind", FORESTS)


@parametrize_with_checks(
    [
        NCMForestClassifier(),
        NCMForestClassifier(5, max_samples=Bootstrap()),
        *(kind(10) for kind in FORESTS if kind is not NCMForestClassifier),
    ],
    expected_failed_checks=lambda _: DRAWN_BY_WEIGHT,
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(
    ("kind", "least"), [(kind, least) for kind, (least, _) in ACCURACY.items()]
)
def test_every_kind_reads_digits(kind: Any, least: float, digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    assert kind(min_samples_leaf=1, random_state=0).fit(X, y).score(X_test, y_test) > least


def test_it_reads_digits_better_than_class_means_do(digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    varying = X.std(axis=0) > 0.5
    means = NearestCentroid().fit(X[:, varying], y).score(X_test[:, varying], y_test)
    assert NCMForestClassifier(random_state=0).fit(X, y).score(X_test, y_test) > means + 0.04
    careful = NCMForestClassifier(min_samples_leaf=1, standardize=False, random_state=0)
    assert careful.fit(X, y).score(X_test, y_test) > 0.975


def test_it_is_more_accurate_than_a_random_forest_on_image_features(measuring_data: Path) -> None:
    from sklearn.ensemble import RandomForestClassifier

    with np.load(measuring_data / "cifar100_efflite0_pca256.npz") as data:
        chosen, tested = data["y_train"] < 20, data["y_test"] < 20
        X, y = data["X_train"][chosen][::4], data["y_train"][chosen][::4]
        X_test, y_test = data["X_test"][tested], data["y_test"][tested]
    ours = NCMForestClassifier(30, random_state=0).fit(X, y).score(X_test, y_test)
    theirs = RandomForestClassifier(30, random_state=0).fit(X, y).score(X_test, y_test)
    assert ours > theirs + 0.04


@every_kind
def test_lists_of_labels_and_object_arrays_work(kind: Any, digits: Arrays) -> None:
    X, X_test, y, _ = digits
    words = [f"digit {k}" for k in y]
    from_list = kind(3, random_state=0).fit(X, words)
    from_objects = kind(3, random_state=0).fit(X, np.array(words, dtype=object))
    assert from_list.predict(X_test).tolist() == from_objects.predict(X_test).tolist()


def test_memory_mapped_and_read_only_data_work(digits: Arrays, tmp_path: Path) -> None:
    X, _, y, _ = digits
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    forest = NCMForestClassifier(3, random_state=0).fit(mapped, y)
    expected = NCMForestClassifier(3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(forest.predict_proba(mapped), expected.predict_proba(X))


@every_kind
def test_the_seed_decides_and_threads_do_not(kind: Any, digits: Arrays) -> None:
    X, X_test, y, _ = digits
    one = kind(6, random_state=3, n_jobs=1).fit(X, y).predict_proba(X_test)
    two = kind(6, random_state=3, n_jobs=2).fit(X, y).predict_proba(X_test)
    other = kind(6, random_state=4).fit(X, y).predict_proba(X_test)
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


def test_a_generator_is_drawn_from_and_stays_the_callers(digits: Arrays) -> None:
    X, X_test, y, _ = digits
    generator = np.random.RandomState(0)
    forest = NCMForestClassifier(3, random_state=generator)
    first = forest.fit(X, y).predict_proba(X_test)
    second = forest.fit(X, y).predict_proba(X_test)
    assert forest.random_state is generator
    assert (first != second).any()


def test_n_jobs_follows_joblib(digits: Arrays) -> None:
    X, _, y, _ = digits
    with joblib.parallel_config(n_jobs=2):
        NCMForestClassifier(3, random_state=0).fit(X, y)
    NCMForestClassifier(3, n_jobs=-1, random_state=0).fit(X, y)


def test_probabilities_are_shares(small_forest: NCMForestClassifier, digits: Arrays) -> None:
    _, X_test, _, _ = digits
    probabilities = small_forest.predict_proba(X_test)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    with np.errstate(divide="ignore"):
        expected = np.log(probabilities)
    np.testing.assert_array_equal(small_forest.predict_log_proba(X_test), expected)


@every_kind
def test_probabilities_are_the_mean_of_the_leaves_frequencies(kind: Any, digits: Arrays) -> None:
    X, X_test, y, _ = digits
    forest = kind(4, random_state=0).fit(X, y)
    train, test = forest.apply(X), forest.apply(X_test)
    expected = np.zeros((len(X_test), 10))
    for t in range(4):
        for i, leaf in enumerate(test[:, t]):
            expected[i] += (
                np.bincount(y[train[:, t] == leaf], minlength=10) / (train[:, t] == leaf).sum()
            )
    np.testing.assert_allclose(forest.predict_proba(X_test), expected / 4)


@every_kind
def test_leaves_hold_at_least_the_minimum(kind: Any, digits: Arrays) -> None:
    X, _, y, _ = digits
    forest = kind(3, min_samples_leaf=25, random_state=0).fit(X, y)
    for leaves in forest.apply(X).T:
        assert np.unique(leaves, return_counts=True)[1].min() >= 25


def test_comparisons_add_up_the_means_along_the_path(
    small_forest: NCMForestClassifier, digits: Arrays
) -> None:
    _, X_test, _, _ = digits
    few = X_test[:5]
    by_path = np.mean(
        [
            sum(len(step.classes) for step in path.decisions)
            for x in few
            for path in small_forest.explain(x).trees
        ]
    )
    assert small_forest.comparisons(few) == pytest.approx(by_path)


@every_kind
def test_a_row_of_a_data_frame_is_explained(kind: Any, digits: Arrays) -> None:
    X, _, y, _ = digits
    frame = pd.DataFrame(X, columns=[f"pixel{i}" for i in range(64)])
    forest = kind(2, random_state=0).fit(frame, y)
    assert forest.explain(frame.iloc[3]) == forest.explain(frame.iloc[[3]])


@every_kind
def test_one_class_is_predicted(kind: Any, digits: Arrays) -> None:
    X, X_test, _, _ = digits
    forest = kind(3).fit(X, ["only"] * len(X))
    assert set(forest.predict(X_test)) == {"only"}


@every_kind
def test_a_constant_feature_does_no_harm(kind: Any, digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    padded = [np.hstack([A, np.full((len(A), 1), 0.1)]) for A in (X, X_test)]
    forest = kind(10, random_state=0).fit(padded[0], y)
    assert forest.score(padded[1], y_test) > 0.9


@every_kind
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize(("offset", "unit"), [(1e6, 1.0), (0.0, 1e-9), (0.0, 1e12), (-1e4, 1e-3)])
def test_neither_offset_nor_unit_of_the_features_matters(
    kind: Any, standardize: bool, offset: float, unit: float
) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    X = offset + unit * (y[:, None] + rng.normal(scale=0.1, size=(200, 3)))
    forest = kind(5, standardize=standardize, random_state=0)
    assert forest.fit(X, y).score(X, y) == 1.0


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("value", [1e6, 1e9, 1e14, 1e150])
def test_one_wild_value_does_not_spoil_the_rest(
    kind: Any, digits: Arrays, standardize: bool, value: float
) -> None:
    X, X_test, y, y_test = digits
    spoiled = X.copy()
    spoiled[0, 20] = value
    forest = kind(20, standardize=standardize, min_samples_leaf=1, random_state=0)
    unspoiled = forest.fit(X, y).score(X_test, y_test)
    assert forest.fit(spoiled, y).score(X_test, y_test) > unspoiled - 0.03


def test_parameters_of_a_subclass_may_be_fewer(digits: Arrays) -> None:
    class Few(NCMForestClassifier):
        def __init__(self, n_estimators: int = 5, *, random_state: int | None = None) -> None:
            super().__init__(n_estimators, random_state=random_state)

    X, X_test, y, y_test = digits
    assert Few(random_state=0).fit(X, y).score(X_test, y_test) > 0.9


def test_without_standardising_large_features_count_more(digits: Arrays) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = np.column_stack([5 * y + rng.normal(size=400), 1000 * rng.normal(size=400)])
    scaled, unscaled = (
        NCMForestClassifier(5, standardize=each, random_state=0).fit(X[:200], y[:200])
        for each in (True, False)
    )
    assert scaled.score(X[200:], y[200:]) > 0.9
    assert unscaled.score(X[200:], y[200:]) < 0.7


def test_nearer_and_farther_parameters_all_fit(digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    for parameters in (
        {"splits": ClassMeans("log2")},
        {"splits": ClassMeans(0.5)},
        {"splits": ClassMeans(10)},
        {"splits": ClassMeans(10, n_assignments=30, min_gain=0.001)},
        {"splits": Regularised(20)},
        {"splits": Regularised(20, n_assignments=100, scale=2, scoring_samples=100)},
        {"splits": Regularised(2, scoring_samples=None), "storage": Storage(dtype="float16")},
        {"max_samples": 0.5},
        {"max_samples": Bootstrap(0.2)},
        {"standardize": False},
    ):
        forest = NCMForestClassifier(10, random_state=0, **parameters).fit(X, y)
        assert forest.score(X_test, y_test) > 0.85, parameters


@pytest.mark.parametrize(
    ("kind", "least"), [(kind, least) for kind, (_, least) in ACCURACY.items()]
)
def test_it_works_inside_scikit_learns_tools(kind: Any, least: float, digits: Arrays) -> None:
    X, _, y, _ = digits
    pipeline = make_pipeline(StandardScaler(), kind(3, random_state=0))
    assert cross_val_score(pipeline, X[:400], y[:400], cv=2).mean() > least
    search = GridSearchCV(kind(3, random_state=0), {"min_samples_leaf": [5, 20]})
    assert search.fit(X[:300], y[:300]).best_params_["min_samples_leaf"] in (5, 20)


@pytest.mark.slow
def test_importing_is_fast() -> None:
    code = (
        "import sklearn.ensemble, sklearn.utils.multiclass, time; start = time.perf_counter();"
        "import evergrow; print(time.perf_counter() - start)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(out.stdout) < 0.5


FEW_X = np.arange(40.0).reshape(20, 2)
FEW_Y = np.arange(20) % 2


@pytest.mark.parametrize("standardize", [True, False])
def test_a_value_far_outside_the_training_data_is_only_far_away(standardize: bool) -> None:
    forest = NCMForestClassifier(3, standardize=standardize, min_samples_leaf=1, random_state=0)
    forest.fit(FEW_X, FEW_X[:, 0] > 20)
    # The largest numbers there are; scaled, they would not fit single precision.
    assert forest.predict([[1e308, 1e308], [-1e308, -1e308]]).tolist() == [True, False]


def test_one_sample_is_not_enough_to_fit() -> None:
    with pytest.raises(ValueError, match="1 sample"):
        NCMForestClassifier().fit(FEW_X[:1], FEW_Y[:1])


def test_more_samples_per_tree_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match=r"max_samples must be at most .* 20, got 21"):
        NCMForestClassifier(max_samples=21).fit(FEW_X, FEW_Y)


def test_an_unusable_instruction_set_is_named() -> None:
    code = "import evergrow._core as core; core.chosen_kernel()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "EVERGROW_ISA": "mmx"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "EVERGROW_ISA must name" in done.stderr
