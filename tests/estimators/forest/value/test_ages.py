"""Which trees know which classes, through updates, forgetting, renaming and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import NCMForestClassifier
from evergrow.estimators.forest.value.ages import NEVER, Ages
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import blobs, strategies_of, strategy
from tests.estimators.model_files import check_refused, forge, reload

X_QUERY, _ = blobs(80, range(8), seed=77)


def ages_of(forest: Any) -> tuple[list[int], list[int]]:
    ages = forest._fitted.history.ages
    return ages.taught.tolist(), ages.came.tolist()


def mixed(kind: Any = NCMForestClassifier, **options: Any) -> Any:
    """A forest of four trees, of which one was grown at each of two updates."""
    values = {"min_samples_leaf": 3, "update": strategy("igt", 0.25), "random_state": 0, **options}
    forest = kind(4, **values).fit(*blobs(120, [0, 1, 2]))
    return forest.partial_fit(*blobs(60, [1, 3], seed=1)).partial_fit(*blobs(60, [4, 5], seed=2))


def test_a_tree_is_as_old_as_its_growth_and_a_class_as_its_first_sample() -> None:
    assert ages_of(mixed()) == ([1, 2, 0, 0], [0, 0, 0, 1, 2, 2])


def test_strategies_that_change_splits_teach_all_trees() -> None:
    for update in ("rust", "rtst"):
        forest = mixed(update=strategy(update, 0.25))
        assert ages_of(forest) == ([2, 2, 2, 2], [0, 0, 0, 1, 2, 2])
        assert forest._fitted.history.ages.votes is None
    forest.set_params(update=strategy("igt", 0.25)).partial_fit(*blobs(60, [6], seed=3))
    assert ages_of(forest) == ([2, 2, 3, 2], [0, 0, 0, 1, 2, 2, 3])


def test_a_column_without_samples_waits_for_its_first_one() -> None:
    forest = NCMForestClassifier(4, update=strategy("igt", 0.25), random_state=0)
    forest.partial_fit(*blobs(60, [0, 1]), classes=[0, 1, 2, 3])
    assert ages_of(forest)[1] == [0, 0, NEVER, NEVER]
    forest.partial_fit(*blobs(60, [0, 3], seed=1))
    assert ages_of(forest)[1] == [0, 0, NEVER, 1]


def test_forgetting_and_renaming_keep_the_ages_of_the_other_classes() -> None:
    forest = mixed().forget(classes=[1, 4])
    assert forest.classes_.tolist() == [0, 2, 3, 5]
    assert ages_of(forest) == ([1, 2, 0, 0], [0, 0, 1, 2])
    forest.rename_classes({5: 3, 0: 7})
    assert forest.classes_.tolist() == [7, 2, 3]
    assert ages_of(forest)[1] == [0, 0, 1]
    forest.partial_fit(*blobs(60, [4], seed=3))
    assert ages_of(forest) == ([1, 2, 4, 0], [0, 0, 1, 4])


def test_a_merged_class_is_as_old_as_its_oldest_part() -> None:
    ages = Ages(np.array([0, 2]), np.array([3, 1, NEVER, 2]))
    assert ages.with_columns([0, 0, 1, 1], 2).came.tolist() == [1, 2]
    assert ages.with_columns([-1, 0, 1, -1], 2).came.tolist() == [1, NEVER]


@pytest.mark.parametrize("kind", FORESTS)
def test_forests_whose_trees_know_alike_vote_as_before(kind: Any) -> None:
    for update in strategies_of(kind):
        forest = mixed(kind, update=strategy(update))
        assert forest._fitted.history.ages.votes is None
        plain = forest._fitted.forest.predict_proba(X_QUERY, forest._fitted.standardization.core, 1)
        np.testing.assert_array_equal(forest.predict_proba(X_QUERY), plain)


@pytest.mark.parametrize("kind", FORESTS)
def test_probabilities_by_age_add_up_to_one(kind: Any) -> None:
    forest = mixed(kind)
    assert forest._fitted.history.ages.votes is not None
    np.testing.assert_allclose(forest.predict_proba(X_QUERY).sum(axis=1), 1)
    np.testing.assert_array_equal(
        forest.predict(X_QUERY), forest.classes_[forest.predict_proba(X_QUERY).argmax(axis=1)]
    )


@pytest.mark.parametrize("refresh", [0.25, "auto"])
def test_votes_do_not_depend_on_the_number_of_threads(refresh: Any) -> None:
    answers = [
        mixed(update=strategy("igt", refresh), n_jobs=n).predict_proba(X_QUERY) for n in (1, 2, 3)
    ]
    for other in answers[1:]:
        np.testing.assert_array_equal(other, answers[0])


@pytest.mark.parametrize("inference_only", [False, True])
def test_a_file_keeps_the_ages(inference_only: bool, tmp_path: Path) -> None:
    forest = mixed()
    loaded = reload(forest, tmp_path, inference_only=inference_only)
    assert ages_of(loaded) == ages_of(forest)
    np.testing.assert_array_equal(loaded.predict_proba(X_QUERY), forest.predict_proba(X_QUERY))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("taught", np.zeros(5, dtype=np.int64)),
        ("came", np.zeros(6, dtype=np.int32)),
        ("came", np.full(6, -2, dtype=np.int64)),
        ("taught", np.full(4, 9, dtype=np.int64)),
    ],
)
def test_damaged_ages_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "damaged.evergrow"
    mixed().save(path)
    check_refused(path, forge(f"history.ages.{name}", value))
