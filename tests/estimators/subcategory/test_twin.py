"""Every method learns what its twin, written in NumPy, learns, from first fit to refining."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow import SubcategoryForestClassifier
from evergrow.estimators import Regularised
from evergrow.estimators.forest.value.standardization import Standardization
from tests.estimators.subcategory.levels import Array
from tests.reference.subcategories import METHODS, Model, Settings, StackedModel

D = 3
N_TREES = 2
# Features that are quarters of small integers once they are centred and scaled: sums are exact.
UNIT = 4


def quarters(n: int, seed: int, fine: range = range(9)) -> tuple[Array, Array]:
    """Integer features and labels of coarse classes with three fine ones each."""
    random = np.random.default_rng(seed)
    y = random.choice(list(fine), n)
    centres = np.random.default_rng(1).integers(-3, 4, (12, D))
    X = np.clip(centres[y] + random.integers(-1, 2, (n, D)), -UNIT, UNIT)
    return X.astype(np.float64), np.column_stack([y // 3 + 1000, y])


def missing(Y: Array, seed: int) -> Array:
    """The labels without three in four of the fine ones, and without all of one coarse class."""
    random = np.random.default_rng(seed)
    fine = np.where(random.random(len(Y)) < 0.75, -1, Y[:, 1])
    return np.column_stack([Y[:, 0], np.where(Y[:, 0] == 1000 + seed % 4, -1, fine)])


def first_samples(seed: int) -> tuple[Array, Array]:
    """Samples whose median is zero and whose spread is known, also of those with fine labels."""
    X, Y = quarters(120, seed)
    Y = missing(Y, seed)
    return balanced(X, Y)


def balanced(X: Array, Y: Array) -> tuple[Array, Array]:
    """The samples, as far again on the other side of zero, and the ends often enough."""
    labelled = Y[Y[:, -1] >= 0][:6]
    X = np.concatenate([X, -X, np.full((6, D), UNIT), np.full((6, D), -UNIT)])
    return X, np.concatenate([Y, Y, labelled, labelled])


def made(method: str, seed: int) -> SubcategoryForestClassifier:
    """A forest with the settings of its twin."""
    splits = Regularised(6, n_assignments=5, scoring_samples=1024)
    options: dict[str, Any] = {"splits": splits, "min_samples_leaf": 2}
    return SubcategoryForestClassifier(
        N_TREES, method=method, standardize=False, random_state=seed, **options
    )


def pair(method: str, seed: int) -> tuple[SubcategoryForestClassifier, Model]:
    """A forest and its twin after the first fit."""
    X, Y = first_samples(seed)
    scale = Standardization.common(X)
    assert (scale.mean == 0).all()
    assert (scale.scale == 1 / UNIT).all()
    forest = made(method, seed).fit(X, Y)
    options = Settings(N_TREES, forest._fitted.forest.history.seed, 6, 5, 2)
    twin = Model(METHODS[method], options)
    twin.fit((X / UNIT).astype(np.float32), *Y.T.tolist())
    return forest, twin


def assert_same(forest: Any, twin: Model, X: Array) -> None:
    names = dict(zip(forest._fitted.tree.columns.tolist(), forest.classes_.tolist(), strict=True))
    assert {c: twin.classes[c][1] for c in names} == names
    found = forest.predict_proba(X)
    expected = twin.predict_proba((X / UNIT).astype(np.float32))
    np.testing.assert_allclose(found, expected[:, list(names)], rtol=0, atol=1e-9)
    classes = forest._fitted.forest.forest.samples.classes
    np.testing.assert_array_equal(classes, twin.finest)


def every_pair(first: int) -> list[Any]:
    """Methods and seeds: a change must pass one seed of each method, the others run every night."""
    return [
        pytest.param(method, seed, marks=[] if seed == (k + first) % 4 else pytest.mark.nightly)
        for k, method in enumerate(METHODS)
        for seed in range(4)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "seed"), every_pair(0))
def test_the_forest_is_the_twins_from_fit_to_refine(method: str, seed: int) -> None:
    forest, twin = pair(method, seed)
    queries = quarters(30, seed + 50, range(12))[0]
    assert_same(forest, twin, queries)
    for k, fine in enumerate((range(9), range(12))):
        more, Y_more = quarters(20, 10 * seed + k, fine)
        Y_more = missing(Y_more, seed + 2 * k)
        forest.partial_fit(more, Y_more)
        twin.partial_fit((more / UNIT).astype(np.float32), *Y_more.T.tolist())
        assert_same(forest, twin, queries)
    if method == "fine-only":
        return
    rows = np.flatnonzero(twin.coarse == twin.coarse[0])[:12]
    ids = forest._fitted.forest.forest.samples.ids[rows]
    fine = [100 + k % 3 for k in range(len(rows))]
    owners = [twin.classes[c][1] for c in twin.coarse[rows]]
    # Some of the samples have a fine class, so the class above the new ones must be said.
    forest.refine(ids, fine, hierarchy=dict.fromkeys(fine, owners[0]))
    twin.refine(rows.tolist(), owners, fine)
    assert_same(forest, twin, queries)


def three_levels(Y: Array, seed: int) -> Array:
    """Names of three levels, each sample known down to any of them; one class has no kinds."""
    random = np.random.default_rng([seed, 3])
    fine = Y[:, 1]
    paths = np.column_stack([1000 + fine // 6, 100 + fine // 3, fine])
    depth = random.integers(0, 3, len(Y))
    paths[np.arange(3) > np.where(fine // 3 == seed % 4, np.minimum(depth, 1), depth)[:, None]] = -1
    return paths


def first_of_three_levels(seed: int) -> tuple[Array, Array]:
    X, Y = quarters(120, seed)
    return balanced(X, three_levels(Y, seed))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "seed"), every_pair(2))
def test_a_forest_of_three_levels_is_the_twins(method: str, seed: int) -> None:
    X, Y = first_of_three_levels(seed)
    options: dict[str, Any] = {"n_subsets": 6, "n_assignments": 5, "min_samples_leaf": 2}
    forest = made(method, seed).fit(X, Y)
    scale = forest._fitted.forest.standardization
    assert (scale.mean == 0).all()
    assert (scale.scale == 1 / UNIT).all()
    twin = Model(METHODS[method], Settings(N_TREES, forest._fitted.forest.history.seed, **options))
    twin.fit((X / UNIT).astype(np.float32), *Y.T.tolist())
    queries = quarters(30, seed + 50, range(12))[0]
    assert_same(forest, twin, queries)
    for k, fine in enumerate((range(9), range(12))):
        more, Y_more = quarters(20, 10 * seed + k, fine)
        Y_more = three_levels(Y_more, seed + 1 + k)
        forest.partial_fit(more, Y_more)
        twin.partial_fit((more / UNIT).astype(np.float32), *Y_more.T.tolist())
        assert_same(forest, twin, queries)
    if method == "fine-only":
        return
    # New kinds of a class in the middle.
    middle = next(c for c, (level, _) in enumerate(twin.classes) if level == 1)
    rows = np.flatnonzero(twin.known == middle)[:9]
    ids = forest._fitted.forest.forest.samples.ids[rows]
    names = [500 + k % 3 for k in range(len(rows))]
    own = twin.classes[middle][1]
    forest.refine(ids, names, hierarchy=dict.fromkeys(names, own))
    top = twin.classes[twin.parents[middle]][1]
    twin.refine(rows.tolist(), [top] * len(rows), [own] * len(rows), names)
    assert_same(forest, twin, queries)


def measured(rows: Array) -> tuple[Array, Array]:
    found = Standardization.common(rows)
    return found.mean, found.scale


def stacked_pair(seed: int) -> tuple[SubcategoryForestClassifier, StackedModel]:
    """Stacked forests and their twin after the first fit."""
    X, Y = first_samples(seed)
    options: dict[str, Any] = {"n_subsets": 6, "n_assignments": 5, "min_samples_leaf": 2}
    forest = made("stacked", seed).fit(X, Y)
    settings = Settings(N_TREES, forest._fitted.forest.history.seed, **options)
    twin = StackedModel(settings, 10.0, measured)
    twin.fit((X / UNIT).astype(np.float32), X, *Y.T.tolist())
    return forest, twin


def assert_same_stack(forest: Any, twin: StackedModel, X: Array) -> None:
    rows = (X / UNIT).astype(np.float32)
    fitted = forest._fitted
    # Without standardising, the second forest gets the features as they came.
    np.testing.assert_allclose(fitted.stack.rows(X, 1), twin.features(rows, X), rtol=0, atol=1e-12)
    classes = fitted.forest.forest.samples.classes
    np.testing.assert_array_equal(classes, twin.second.finest)
    found, expected = forest.predict_proba(X), twin.predict_proba(rows, X)
    np.testing.assert_allclose(found, expected[:, fitted.tree.columns], rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_stacked_forests_are_the_twins_from_fit_to_a_new_coarse_class(seed: int) -> None:
    forest, twin = stacked_pair(seed)
    queries = quarters(30, seed + 50, range(12))[0]
    assert_same_stack(forest, twin, queries)
    regrown = []
    for k, fine in enumerate((range(9), range(9), range(12), range(12))):
        more, Y_more = quarters(20, 10 * seed + k, fine)
        Y_more = missing(Y_more, seed + 2 * k) if k else Y_more
        forest.partial_fit(more, Y_more)
        rows = (more / UNIT).astype(np.float32)
        regrown.append(twin.partial_fit(rows, more, *Y_more.T.tolist()))
        assert_same_stack(forest, twin, queries)
    assert True in regrown
    assert False in regrown


def test_standardised_features_leave_the_scale_of_the_first_answers_alone() -> None:
    X, Y = first_samples(0)
    forest = SubcategoryForestClassifier(3, method="stacked", random_state=0)
    forest.fit(1000 * X + 5, Y)
    rows = forest._fitted.stack.rows(1000 * X + 5, 1)
    np.testing.assert_allclose(rows[:, :D].std(axis=0), 1.0)
    np.testing.assert_allclose(rows[:, D:].sum(axis=1), 10.0)
    inner = forest._fitted.forest.standardization.scale
    assert (inner == inner[0]).all()
