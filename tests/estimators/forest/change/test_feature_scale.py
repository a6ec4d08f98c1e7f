"""The transform of the features: what is measured, and what is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from evergrow import (
    IGT,
    AxisForestClassifier,
    LinearForestClassifier,
    NCMForestClassifier,
    NCMMetric,
    SVMForestClassifier,
    _core,
)
from evergrow.estimators import Storage
from evergrow.estimators.forest.change.feature_scale import Candidate, LeftOut, first_good
from evergrow.estimators.forest.change.growth import stored_batch
from evergrow.estimators.forest.value.fitted import ForestBatch
from evergrow.estimators.forest.value.standardization import ClassScatter, Standardization
from tests.estimators.model_files import reload
from tests.reference import feature_scale as twin

Array = np.ndarray[Any, Any]


def correlated(n: int, n_classes: int, n_features: int = 12, seed: int = 0) -> tuple[Array, Array]:
    """Classes that differ in directions in which samples vary little.

    In four other directions they vary so much that no feature, and no neighbour, tells the class.
    """
    random, fixed = np.random.default_rng(seed), np.random.default_rng(7)
    y = np.arange(n) % n_classes
    directions = np.linalg.qr(fixed.normal(size=(n_features, n_features)))[0]
    centres = 2 * fixed.normal(size=(n_classes, n_features - 4)) @ directions[4:]
    noise = 30 * random.normal(size=(n, 4)) @ directions[:4]
    return centres[y] + noise + 0.5 * random.normal(size=(n, n_features)), y


def rings(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Two classes with one mean: only neighbours tell them apart. A third feature is noise."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angle = random.uniform(0, 2 * np.pi, n)
    radius = np.where(y == 0, 1.0, 3.0) + 0.1 * random.normal(size=n)
    circle = np.column_stack([np.cos(angle), np.sin(angle)]) * radius[:, None]
    return np.column_stack([circle, 0.1 * random.normal(size=(n, 6))]), y


def left_out(X: Array, y: Array) -> LeftOut:
    batch = ForestBatch(X, y.astype(np.int32), np.arange(len(y)))
    rows, scale = np.arange(len(y)), Standardization.of_each(X).scale
    scatter = ClassScatter.of(X, batch.codes, rows, int(y.max()) + 1, scale)
    return LeftOut.of(batch, rows, scatter)


@pytest.mark.parametrize("seed", range(3))
def test_the_scatter_is_that_of_the_twin(seed: int) -> None:
    X, y = correlated(60, 4, seed=seed)
    found = left_out(X, y).scatter
    np.testing.assert_allclose(found.means, twin.class_means(X, y))
    scale = Standardization.of_each(X).scale
    expected = twin.covariance_within(X * scale, y)
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-4, atol=1e-5)
    assert found.n_free == 56


@pytest.mark.parametrize("shrinkage", [0.1, 0.6, 0.9])
def test_a_whitened_space_has_the_shrunk_covariance_within_classes(shrinkage: float) -> None:
    X, y = correlated(300, 5)
    judged = left_out(X, y)
    whitened = Standardization.whitened(Standardization.of_each(X), judged.scatter, shrinkage)
    Z = whitened.apply(X)
    covariance = twin.covariance_within(X, y)
    metric = twin.shrunk(covariance, np.diagonal(covariance), shrinkage)
    for i, j in [(0, 1), (5, 17), (100, 250)]:
        distance = float(((Z[i] - Z[j]) ** 2).sum())
        assert distance == pytest.approx(twin.squared_distance(X[i], X[j], metric), rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shrinkage", [0.1, 0.5, 0.9])
def test_left_out_samples_are_classified_as_by_the_twin(seed: int, shrinkage: float) -> None:
    # Few samples per feature: each has a large part in the covariance.
    X, y = correlated(30, 3, seed=seed)
    judged = left_out(X, y)
    plain = Standardization.of_each(X)
    whitened = Candidate(Standardization.whitened(plain, judged.scatter, shrinkage), shrinkage)
    assert judged.mean_accuracy(
        whitened, whitened.standardization.apply(X)
    ) == twin.whitened_mean_accuracy(X, y, shrinkage)
    scaled, Z = Candidate(plain), (X - plain.mean) * plain.scale
    assert judged.mean_accuracy(scaled, scaled.standardization.apply(X)) == twin.mean_accuracy(Z, y)
    assert judged.neighbour_accuracy(plain.apply(X)) == twin.neighbour_accuracy(Z, y)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shrinkage", [0.3, 0.8])
def test_samples_of_equal_length_are_left_out_as_by_the_twin(seed: int, shrinkage: float) -> None:
    X, y = correlated(30, 3, seed=seed)
    judged = left_out(X, y)
    plain = Standardization.of_each(X)
    whitened = Candidate(Standardization.whitened(plain, judged.scatter, shrinkage), shrinkage)
    batch = ForestBatch(X, y.astype(np.int32), np.arange(30))
    candidates = judged.of_equal_lengths([Candidate(plain), whitened], batch, np.arange(30))
    scaled, equal = candidates
    expected = twin.whitened_equal_accuracy(X - X.mean(axis=0), y, shrinkage)
    assert judged.mean_accuracy(equal, equal.standardization.apply(X)) == expected
    Z = twin.equal_lengths((X - plain.mean) * plain.scale)
    assert judged.mean_accuracy(scaled, scaled.standardization.apply(X)) == twin.mean_accuracy(Z, y)
    np.testing.assert_allclose(scaled.standardization.apply(X), Z, rtol=1e-5, atol=1e-6)


def of_random_length(n_classes: int, per_class: int, n_features: int = 64) -> Any:
    """Classes that differ in direction; the lengths of samples say nothing."""
    rng = np.random.default_rng(3)
    y = np.tile(np.arange(n_classes), 30 + per_class)
    X = rng.normal(size=(n_classes, n_features))[y] + 0.7 * rng.normal(size=(len(y), n_features))
    X *= rng.uniform(0.3, 3.0, (len(y), 1))
    n = n_classes * per_class
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.parametrize(("n_classes", "per_class"), [(20, 1), (60, 1), (40, 3), (30, 10)])
def test_small_classes_of_many_features_are_told_apart_by_direction(
    n_classes: int, per_class: int
) -> None:
    X, y, X_test, y_test = of_random_length(n_classes, per_class)
    forest = NCMForestClassifier(20, random_state=0).fit(X, y)
    scaled = NCMForestClassifier(20, random_state=0, standardize="scale").fit(X, y)
    assert forest.equal_lengths_
    assert not scaled.equal_lengths_
    assert forest.score(X_test, y_test) > scaled.score(X_test, y_test)


def test_lengths_stay_where_classes_are_large_or_features_few() -> None:
    X, y, _, _ = of_random_length(10, 30)
    assert not NCMForestClassifier(5, random_state=0).fit(X, y).equal_lengths_
    X, y, _, _ = of_random_length(20, 1, n_features=8)
    assert not NCMForestClassifier(5, random_state=0).fit(X, y).equal_lengths_


def test_a_feature_that_did_not_vary_does_not_shorten_a_sample() -> None:
    X, y, X_test, y_test = of_random_length(20, 2)
    forest = NCMForestClassifier(20, random_state=0).fit(X, y)
    wide = NCMForestClassifier(20, random_state=0).fit(np.c_[X, np.full(len(X), 5.0)], y)
    other = np.random.default_rng(0).choice([5.0, 1e6], len(X_test))
    assert wide.equal_lengths_
    assert wide.score(np.c_[X_test, other], y_test) == forest.score(X_test, y_test)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_lengths_are_measured_again_when_classes_are_large(dtype: Any) -> None:
    X, y, more, of_more = of_random_length(60, 1)
    forest = NCMForestClassifier(10, random_state=0, storage=Storage(dtype=dtype)).fit(X, y)
    assert forest.equal_lengths_
    for first in range(0, len(more), 300):
        forest.partial_fit(more[first : first + 300], of_more[first : first + 300])
    again = NCMForestClassifier(10, random_state=0).fit(np.r_[X, more], np.r_[y, of_more])
    assert forest.equal_lengths_ == again.equal_lengths_
    assert forest.score(more, of_more) == pytest.approx(again.score(more, of_more), abs=0.02)


def test_a_forest_of_equal_lengths_is_saved(tmp_path: Path) -> None:
    X, y, X_test, _ = of_random_length(60, 1)
    forest = NCMForestClassifier(5, random_state=0).fit(X, y)
    again = reload(forest, tmp_path)
    assert again.equal_lengths_
    np.testing.assert_array_equal(again.predict_proba(X_test), forest.predict_proba(X_test))


def test_a_candidate_that_only_might_help_is_not_chosen() -> None:
    X, y = correlated(200, 2)
    judged = left_out(X, y)
    plain = Candidate(Standardization.of_each(X))
    whitened = Candidate(Standardization.whitened(plain.standardization, judged.scatter, 0.1), 0.1)
    assert first_good([plain, whitened], judged) is whitened
    assert first_good([whitened, plain], judged) is whitened
    assert first_good([plain, plain], judged) is plain


def test_correlated_features_are_whitened_and_the_forest_is_better() -> None:
    X, y = correlated(900, 6)
    forests = {
        named: NCMForestClassifier(10, standardize=named, random_state=0).fit(X[:600], y[:600])
        for named in ("auto", "whiten", "scale", "none")
    }
    assert {name: forest.standardize_ for name, forest in forests.items()} == {
        "auto": "whiten",
        "whiten": "whiten",
        "scale": "scale",
        "none": "none",
    }
    scores = {name: forest.score(X[600:], y[600:]) for name, forest in forests.items()}
    assert scores["auto"] >= scores["whiten"] > scores["scale"] + 0.2


def test_features_stay_as_they_are_where_only_neighbours_tell_classes_apart() -> None:
    X, y = rings(600)
    forest = NCMForestClassifier(10, random_state=0).fit(X, y)
    assert forest.standardize_ == "none"


@pytest.mark.parametrize("n", [2, 8, 49])
def test_few_samples_are_scaled(n: int) -> None:
    X, y = correlated(n, 2)
    assert NCMForestClassifier(3, random_state=0).fit(X, y).standardize_ == "scale"


def test_classes_of_one_sample_are_scaled() -> None:
    X, _ = correlated(80, 4)
    forest = NCMForestClassifier(3, min_samples_leaf=1, random_state=0).fit(X, np.arange(80))
    assert forest.standardize_ == "scale"


def test_features_that_do_not_vary_within_classes_do_no_harm() -> None:
    X, y = correlated(300, 3)
    X = np.column_stack([X, np.full(300, 4.0), y])
    for named in ("auto", "whiten"):
        forest = NCMForestClassifier(5, standardize=named, random_state=0).fit(X, y)
        assert forest.score(X, y) == 1.0


def test_booleans_are_scale_and_none() -> None:
    X, y = correlated(300, 3)
    for named, flag in [("scale", True), ("none", False)]:
        one, other = (
            NCMForestClassifier(3, standardize=value, random_state=0).fit(X, y)
            for value in (named, flag)
        )
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize(
    "kind", [AxisForestClassifier, LinearForestClassifier, SVMForestClassifier]
)
def test_forests_without_class_means_are_scaled_by_themselves(kind: Any) -> None:
    X, y = correlated(300, 3)
    assert kind(3, random_state=0).fit(X, y).standardize_ == "scale"


@pytest.mark.parametrize("kind", [LinearForestClassifier, SVMForestClassifier])
def test_planes_can_be_found_in_a_whitened_space(kind: Any) -> None:
    X, y = correlated(600, 3)
    forest = kind(10, standardize="whiten", random_state=0).fit(X[:400], y[:400])
    assert forest.score(X[400:], y[400:]) > 0.8


def test_single_features_are_not_mixed() -> None:
    X, y = correlated(100, 3)
    with pytest.raises(ValueError, match="mixes features"):
        AxisForestClassifier(3, standardize="whiten").fit(X, y)


@pytest.mark.parametrize("value", ["whitened", "", 2, None, 0.5])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="standardize must be one of"):
        NCMForestClassifier(standardize=value).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("noise", [3.0, 5.0])
def test_a_learnt_metric_in_front_is_not_undone(noise: float) -> None:
    X, y = correlated(1500, 20, n_features=60)
    X += noise * np.random.default_rng(5).normal(size=X.shape)
    scores = {}
    for named in ("auto", "scale", "none"):
        forest = NCMForestClassifier(10, standardize=named, random_state=0)
        pipeline = make_pipeline(NCMMetric(random_state=0), forest).fit(X[:1000], y[:1000])
        scores[named] = pipeline.score(X[1000:], y[1000:])
    assert scores["auto"] >= scores["none"] > scores["scale"] + 0.02


@pytest.mark.parametrize("half", [False, True])
def test_a_row_does_not_depend_on_the_rows_around_it(half: bool) -> None:
    X, y = correlated(700, 5, n_features=37)
    whitened = Standardization.whitened(Standardization.of_each(X), left_out(X, y).scatter, 0.3)
    expected = (X - whitened.mean) * whitened.scale @ np.asarray(whitened.whitening, float).T
    shape, dtype = (len(X), _core.padded_width(37)), np.uint16 if half else np.float32
    together, threads, alone = (np.empty(shape, dtype) for _ in range(3))
    _core.standardize_rows(X, whitened.core, together)
    _core.standardize_rows(X, whitened.core, threads, 3)
    for i in range(len(X)):
        _core.standardize_rows(X[i : i + 1], whitened.core, alone[i : i + 1])
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_array_equal(threads, together)
    found = together.view(np.float16) if half else together
    np.testing.assert_allclose(found[:, :37], expected, atol=0.02 if half else 1e-4)
    assert not together[:, 37:].any()


def test_undoing_gives_the_input_back() -> None:
    X, y = correlated(300, 4)
    whitened = Standardization.whitened(Standardization.of_each(X), left_out(X, y).scatter, 0.3)
    np.testing.assert_allclose(whitened.undo(whitened.apply(X)), X, atol=1e-3)
    np.testing.assert_allclose(whitened.undo(whitened.apply(X)[3]), X[3], atol=1e-3)


def test_a_whitened_forest_grows_forgets_and_is_saved(tmp_path: Path) -> None:
    X, y = correlated(900, 9)
    first = y < 5
    forest = NCMForestClassifier(8, random_state=0, n_jobs=2).fit(X[first], y[first])
    assert forest.standardize_ == "whiten"
    forest.partial_fit(X[~first], y[~first])
    assert forest.score(X, y) > 0.8
    loaded = reload(forest, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), forest.predict_proba(X))
    assert loaded.standardize_ == "whiten"
    for each in (forest, loaded):
        each.forget(classes=[7]).partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(loaded.predict_proba(X), forest.predict_proba(X))
    small = reload(forest, tmp_path, inference_only=True)
    np.testing.assert_array_equal(small.predict_proba(X), forest.predict_proba(X))


def test_the_forest_is_the_same_for_any_number_of_threads_and_memory() -> None:
    X, y = correlated(2000, 5, n_features=64)
    whole = NCMForestClassifier(4, random_state=0).fit(X, y)
    assert whole.standardize_ == "whiten"
    for options in ({"n_jobs": 3}, {"standardize": "whiten", "storage": Storage(1)}):
        other = NCMForestClassifier(4, random_state=0, **options).fit(X, y)
        np.testing.assert_array_equal(other.predict_proba(X), whole.predict_proba(X))


def test_means_are_explained_in_the_units_of_the_input() -> None:
    X, y = correlated(300, 3)
    forest = NCMForestClassifier(1, random_state=0).fit(X, y)
    means = [forest._fitted.centroid(0, 0, j) for j in range(2)]
    nearest = [np.abs(twin.class_means(X, y) - mean).max(axis=1).min() for mean in means]
    # Whitened means have one byte per feature.
    assert max(nearest) < 1.0


def grown_twice(**options: Any) -> tuple[Any, Array, Array]:
    """A forest of a few samples of many features, and data that are four times as many and more."""
    X, y = correlated(1200, 12, n_features=40)
    few = y < 3
    forest = NCMForestClassifier(5, random_state=0, **options).fit(X[few][:60], y[few][:60])
    return forest, X, y


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_features_are_measured_again_when_a_forest_outgrows_its_first_samples(dtype: Any) -> None:
    forest, X, y = grown_twice()
    X = X.astype(dtype)
    assert forest._fitted.history.n_measured == 60
    same = np.flatnonzero(y < 3)[60:160]
    forest.partial_fit(X[same], y[same])
    assert forest._fitted.history.n_measured == 60
    more = np.flatnonzero(y < 4)[:200]
    forest.partial_fit(X[more], y[more])
    assert forest._fitted.history.n_measured == 360
    assert forest._fitted.history.n_updates == 2
    # Four samples per feature are enough.
    before = forest._fitted.standardization
    few = np.flatnonzero(y < 8)
    forest.partial_fit(X[few], y[few])
    assert forest._fitted.standardization is before
    # Three times as many classes need another look.
    forest.partial_fit(X, y)
    assert forest._fitted.history.n_measured_classes == 12
    assert len(np.unique(forest.stored_ids_)) == 60 + 100 + 200 + len(few) + len(y)


def test_a_forest_that_measured_again_knows_what_a_new_one_knows() -> None:
    X, y = correlated(3000, 12, n_features=40)
    X *= np.linspace(1, 100, 40)
    few = np.flatnonzero(y < 2)[:60]
    rest = np.setdiff1d(np.arange(2000), few)
    grown = NCMForestClassifier(10, random_state=0).fit(X[few], y[few])
    grown.partial_fit(X[rest], y[rest])
    again = NCMForestClassifier(10, random_state=0).fit(X[:2000], y[:2000])
    kept = NCMForestClassifier(10, update=IGT(refresh=0.0), random_state=0).fit(X[few], y[few])
    kept.partial_fit(X[rest], y[rest])
    scores = [forest.score(X[2000:], y[2000:]) for forest in (grown, again, kept)]
    assert scores[0] > scores[1] - 0.03
    assert scores[0] > scores[2]


@pytest.mark.parametrize(
    "options",
    [
        {"update": IGT(refresh=0.0)},
        {"update": IGT(refresh=0.1)},
        {"standardize": "none"},
        {"storage": Storage(per_class=30)},
        {"max_samples": 50},
    ],
    ids=lambda options: next(iter(options)),
)
def test_features_are_measured_once_where_samples_are_not_all_at_hand(
    options: dict[str, Any],
) -> None:
    forest, X, y = grown_twice(**options)
    forest.partial_fit(X[:600], y[:600])
    assert forest._fitted.history.n_measured == 60


def test_a_loaded_forest_measures_again_as_well(tmp_path: Path) -> None:
    forest, X, y = grown_twice()
    loaded = reload(forest, tmp_path)
    for each in (forest, loaded):
        each.partial_fit(X[:600], y[:600])
    np.testing.assert_array_equal(loaded.predict_proba(X), forest.predict_proba(X))
    assert loaded._fitted.history.n_measured == 660


def test_classes_that_come_in_turns_are_all_judged() -> None:
    X, y = correlated(12000, 10)
    shuffled = np.random.default_rng(0).permutation(len(y))
    for order in (np.arange(len(y)), shuffled):
        forest = NCMForestClassifier(2, random_state=0).fit(X[order], y[order])
        assert forest.standardize_ == "whiten"


def test_whitening_needs_no_class_of_two_samples() -> None:
    X, _ = correlated(60, 4)
    for n in (2, 60):
        forest = NCMForestClassifier(3, standardize="whiten", min_samples_leaf=1, random_state=0)
        assert forest.fit(X[:n], np.arange(n)).standardize_ == "whiten"
    taught = NCMForestClassifier(3, standardize="whiten", random_state=0)
    assert taught.partial_fit(X[:1], [0]).partial_fit(X[1:2], [1]).predict(X[:1]) == [0]


def late_feature(seed: int = 0) -> tuple[Array, Array]:
    """Classes of which the second half differs from the first by a feature that is huge there."""
    random = np.random.default_rng(seed)
    y = np.arange(4000) % 20
    X = random.normal(0, 2, (20, 20))[y] + random.normal(size=(4000, 20))
    X[:, 0] = np.where(y < 10, 0.0, 1000.0)
    return X, y


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_feature_far_outside_of_the_first_ones_is_measured_again(dtype: Any) -> None:
    X, y = late_feature()
    old, test = y < 10, np.arange(4000) % 3 == 0
    forest = NCMForestClassifier(10, storage=Storage(dtype=dtype), random_state=0)
    forest.fit(X[old & ~test], y[old & ~test]).partial_fit(X[~old & ~test], y[~old & ~test])
    assert forest._fitted.history.n_measured == (~test).sum()
    assert forest.update_report_.n_refreshed == 10
    assert forest.score(X[test], y[test]) > 0.9


def test_a_large_feature_next_to_small_ones_does_not_hide_them() -> None:
    X, y = late_feature()
    test = np.arange(len(y)) % 3 == 0
    forest = NCMForestClassifier(10, standardize="none", random_state=0).fit(X[~test], y[~test])
    assert forest.score(X[test], y[test]) > 0.9
    assert "halves" in forest._fitted.forest.tree_arrays(0)


def test_wild_values_are_clipped_and_not_measured() -> None:
    forest, X, y = grown_twice()
    X[5, 3] = 1e200
    forest.partial_fit(X, y)
    assert forest._fitted.history.n_measured == 60


def test_what_was_done_to_a_single_feature_is_remembered(tmp_path: Path) -> None:
    X, y = correlated(100, 2)
    for named in ("scale", "none"):
        forest = NCMForestClassifier(2, standardize=named, random_state=0).fit(X[:, :1], y)
        assert forest.standardize_ == reload(forest, tmp_path).standardize_ == named


@pytest.mark.parametrize("noise", [0.0, 1e-4])
@pytest.mark.parametrize("named", ["whiten", "scale", "none"])
def test_a_feature_that_hardly_varies_within_classes_is_not_far_outside(
    named: Any, noise: float
) -> None:
    X, y = correlated(3000, 12)
    X[:, 0] = y + noise * np.random.default_rng(1).normal(size=len(y))
    forest = NCMForestClassifier(5, standardize=named, random_state=0).fit(X[:2000], y[:2000])
    forest.partial_fit(X[2000:2500], y[2000:2500])
    assert forest._fitted.history.n_measured == 2000
    assert forest.update_report_.n_refreshed < 5
    assert np.abs(forest._fitted.standardization.scale[0]) <= 32 / X[:2000, 0].std() + 1e-9


def one_of_each(n_classes: int, seed: int = 0) -> tuple[Any, Any]:
    """One sample of each class, whose last feature does not vary."""
    X = np.random.default_rng(seed).normal(size=(n_classes, 40))
    X[:, -1] = 3.0
    return X, np.arange(n_classes)


def test_a_feature_that_did_not_vary_may_come_to_matter() -> None:
    X, y = one_of_each(60)
    forest = NCMForestClassifier(5, random_state=0).fit(X, y)
    assert forest.equal_lengths_
    more = np.random.default_rng(1).normal(size=(40, 40))
    more[:, -1] = np.repeat([-1e6, 1e6], 20)
    labels = np.repeat([100, 101], 20)
    forest.partial_fit(more, labels)
    assert forest.update_report_.n_refreshed == 5
    assert forest.score(more, labels) == 1


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_features_that_do_not_vary_are_stored(dtype: str) -> None:
    X, y = one_of_each(60)
    forest = NCMForestClassifier(3, storage=Storage(dtype=dtype), random_state=0).fit(X, y)
    X[:, -1] += np.arange(60)
    forest.partial_fit(X, y)
    found = stored_batch(forest._fitted)
    order = np.argsort(found.ids)
    np.testing.assert_allclose(np.asarray(found.X)[order][60:, -1], X[:, -1], rtol=0.1)
