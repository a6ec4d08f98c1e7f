"""Choosing how a forest takes new samples, and what stays the same whatever is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from evergrow import RTST, RUST, ULS, NCMForestClassifier
from evergrow.estimators import Bootstrap
from evergrow.estimators.forest.strategy import STRATEGIES
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import CASES, Array, blobs, leaf_counts, strategies_of, strategy

X_QUERY, _ = blobs(80, range(6), seed=77)
FIRST, SECOND = blobs(150, [0, 1, 2]), blobs(60, [1, 3, 4], seed=1)


def grown(kind: Any, update: Any, refresh: Any = 0.0, **options: Any) -> Any:
    """A forest after two batches, the second by the strategy."""
    values = {"min_samples_leaf": 3, "random_state": 0, **options}
    return kind(5, update=strategy(update, refresh), **values).fit(*FIRST).partial_fit(*SECOND)


def answers(kind: Any, update: Any, **options: Any) -> Array:
    found: Array = grown(kind, update, **options).predict_proba(X_QUERY)
    return found


def learnt(update: Any) -> Array:
    """Answers after two batches, by a strategy as it is given."""
    forest = NCMForestClassifier(5, min_samples_leaf=3, update=update, random_state=0)
    found: Array = forest.fit(*FIRST).partial_fit(*SECOND).predict_proba(X_QUERY)
    return found


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_by_name_or_as_a_value_is_the_same(name: str) -> None:
    np.testing.assert_array_equal(learnt(name), learnt(STRATEGIES[name]()))


def test_a_grid_search_tries_the_options_of_a_value() -> None:
    forest = NCMForestClassifier(3, update=RUST(refresh=0.0), random_state=0)
    search = GridSearchCV(forest, {"update__share": [0.2, 0.6], "update": [RUST(), RTST()]}, cv=2)
    best = search.fit(*FIRST).best_estimator_
    assert best.update.share == search.best_params_["update__share"]
    assert forest.update == RUST(refresh=0.0)


def test_an_option_replaces_the_value_that_others_may_hold() -> None:
    shared = RUST(share=0.5)
    one, other = (NCMForestClassifier(update=shared) for _ in range(2))
    one.set_params(update__share=0.25)
    assert repr(clone(one)) == "NCMForestClassifier(update=RUST(share=0.25))"
    assert other.update is shared


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("nodes", ["size", "uniform", "quality"])
def test_retraining_no_subtree_is_growing_leaves(kind: Any, nodes: Any) -> None:
    np.testing.assert_array_equal(answers(kind, RTST(share=0, nodes=nodes)), answers(kind, "igt"))


def test_reusing_no_subtree_is_growing_leaves() -> None:
    kind = NCMForestClassifier
    np.testing.assert_array_equal(answers(kind, RUST(share=0.0)), answers(kind, "igt"))


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("nodes", ["size", "uniform"])
def test_retraining_every_subtree_is_growing_every_tree_from_scratch(kind: Any, nodes: Any) -> None:
    np.testing.assert_array_equal(
        answers(kind, RTST(share=1, nodes=nodes)), answers(kind, "igt", refresh=1.0)
    )


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_a_full_refresh_makes_all_strategies_one(kind: Any, update: str) -> None:
    forest = grown(kind, update, refresh=1.0)
    assert forest.update_report_.n_refreshed == 5
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), answers(kind, "uls", refresh=1.0))


def test_trees_are_refreshed_in_turn() -> None:
    forest = NCMForestClassifier(5, update=ULS(refresh=0.4), min_samples_leaf=10, random_state=0)
    forest.fit(*FIRST)
    refreshed = []
    for seed in range(5):
        before = [forest._fitted.forest.tree_arrays(t)["left"].tolist() for t in range(5)]
        forest.partial_fit(*blobs(60, [0, 1, 2, 3, 4], seed=seed))
        after = [forest._fitted.forest.tree_arrays(t)["left"].tolist() for t in range(5)]
        refreshed.append({t for t in range(5) if before[t] != after[t]})
    assert [len(trees) for trees in refreshed] == [2] * 5
    assert set.union(*refreshed[:3]) == set(range(5))


@pytest.mark.parametrize("kind", FORESTS)
def test_the_strategy_may_change_between_calls(kind: Any) -> None:
    forest = kind(3, min_samples_leaf=3, random_state=0)
    for seed, name in enumerate((*strategies_of(kind), "uls", "igt", "rtst")):
        forest.set_params(update=strategy(name)).partial_fit(*blobs(60, [seed, seed + 1], seed))
        forest._fitted.forest.check()
        assert forest.update_report_.strategy == (name if seed else "fit")
    assert forest.score(*blobs(60, range(len(forest.classes_)), seed=5)) > 0.6


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in FORESTS for name in STRATEGIES if name not in strategies_of(kind)],
)
@pytest.mark.parametrize("as_value", [True, False])
def test_a_strategy_of_other_splits_is_refused_with_the_reason(
    kind: Any, name: str, as_value: bool
) -> None:
    forest = kind(2, update=STRATEGIES[name]() if as_value else name)
    for train in (forest.fit, forest.partial_fit):
        with pytest.raises(
            ValueError, match=rf"class means.*{kind.__name__}.*\['igt', 'rtst', 'uls'\]"
        ):
            train(*FIRST)


@pytest.mark.parametrize("kind", FORESTS)
def test_a_strategy_that_is_none_is_refused_by_the_names_allowed(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"\['igt', 'rtst', 'rust', 'uls'\].*'rsut'"):
        kind(update="rsut").partial_fit(*FIRST)


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"update__share": 1.5}, r"RTST.share must be a float in \[0, 1\], got 1.5"),
        ({"update__share": float("nan")}, "RTST.share must be"),
        ({"update__share": "half"}, "RTST.share must be .*, got 'half'"),
        ({"update__nodes": "best"}, r"nodes must be one of \['quality', 'size', 'uniform'\], got"),
        ({"update__refresh": -0.1}, r"refresh must be 'auto' or a float in \[0, 1\], got -0.1"),
        ({"update__fraction": 0.5}, r"no field 'fraction'; it has \['refresh', 'share', 'nodes'\]"),
        ({"update": "igt", "update__share": 0.5}, "update__share needs .* 'igt'; it may be .*RTST"),
        ({"update": RTST}, "update must be .* or a value of ULS or IGT or RTST or RUST, got"),
        ({"update": None}, "update must be"),
    ],
)
def test_wrong_options_of_a_strategy_are_named(update: dict[str, Any], message: str) -> None:
    forest = NCMForestClassifier(2, update=RTST(), random_state=0).fit(*FIRST)
    with pytest.raises(ValueError, match=message):
        forest.set_params(**update).partial_fit(*SECOND)
    assert forest.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize(("kind", "update"), CASES)
@pytest.mark.parametrize(
    ("options", "n_drawn"),
    [({"max_samples": Bootstrap()}, 150), ({"max_samples": 0.5}, 75), ({"max_samples": 40}, 40)],
    ids=str,
)
def test_trees_draw_later_rows_at_the_rate_of_the_first(
    kind: Any, update: str, options: dict[str, Any], n_drawn: int
) -> None:
    forest = kind(4, min_samples_leaf=3, update=update, random_state=0, **options).fit(*FIRST)
    assert [leaf_counts(forest, tree).sum() for tree in range(4)] == [n_drawn] * 4
    forest.partial_fit(*SECOND)
    forest._fitted.forest.check()
    for tree in range(4):
        assert abs(leaf_counts(forest, tree).sum() - n_drawn * 210 / 150) <= 1


def test_the_number_of_trees_is_fixed_by_the_first_call() -> None:
    forest = grown(NCMForestClassifier, "igt")
    with pytest.raises(ValueError, match="n_estimators is 6 but the forest has 5 trees"):
        forest.set_params(n_estimators=6).partial_fit(*SECOND)


def test_more_samples_per_tree_than_there_are_is_an_error_that_names_both() -> None:
    with pytest.raises(ValueError, match=r"max_samples must be at most .* 150, got 200"):
        NCMForestClassifier(max_samples=200).fit(*FIRST)


@pytest.mark.parametrize(("kind", "update"), CASES)
@pytest.mark.parametrize("leaf", [1, 40])
def test_the_size_of_leaves_may_change_between_calls(kind: Any, update: str, leaf: int) -> None:
    forest = grown(kind, update).set_params(min_samples_leaf=leaf)
    forest.partial_fit(*blobs(120, [0, 4, 5], seed=3))
    forest._fitted.forest.check()
    assert leaf_counts(forest, 0).sum() == 330


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_any_number_of_threads_makes_the_same_forest(kind: Any, update: str) -> None:
    found = []
    for n_jobs in (1, 2, 4):
        forest = grown(kind, update, n_jobs=n_jobs, refresh=0.2)
        forest.partial_fit(*blobs(50, [5, 6], seed=2)).forget(classes=[1])
        found.append(forest.partial_fit(*blobs(50, [1, 7], seed=3)).predict_proba(X_QUERY))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_another_seed_makes_another_forest_and_the_same_the_same() -> None:
    def learnt(random_state: Any) -> Array:
        forest = NCMForestClassifier(5, update="rust", random_state=random_state)
        return forest.fit(*FIRST).partial_fit(*SECOND).predict_proba(X_QUERY)

    np.testing.assert_array_equal(learnt(3), learnt(3))
    np.testing.assert_array_equal(learnt(3), learnt(np.random.RandomState(3)))
    assert not np.array_equal(learnt(3), learnt(4))
