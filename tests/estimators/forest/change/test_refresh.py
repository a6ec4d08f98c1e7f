"""Trees that are grown again in turn: ``refresh="auto"``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import IGT, ULS, NCMForestClassifier
from evergrow.estimators import Storage
from evergrow.estimators.forest.change.addition import REFRESH_FACTOR, due_share
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import blobs
from tests.estimators.model_files import reload


def log_growth(growth: float) -> float:
    return math.log(growth) / math.log(REFRESH_FACTOR)


X_QUERY, _ = blobs(80, range(12), seed=77)


def auto(n_trees: int = 8, **options: Any) -> NCMForestClassifier:
    values = {"min_samples_leaf": 3, "update": "igt", "random_state": 0}
    return NCMForestClassifier(n_trees, **{**values, **options})


def n_refreshed(forest: Any, n: int, classes: list[int], seed: int = 1) -> int:
    report = forest.partial_fit(*blobs(n, classes, seed)).update_report_
    return int(report.n_refreshed)


def test_the_share_follows_what_grew_more() -> None:
    classes, samples = due_share((10, 11), (500, 500)), due_share((10, 10), (500, 550))
    assert classes == samples
    assert log_growth(1.1) / (1.3 + log_growth(1.1)) < classes < log_growth(1.1)
    assert due_share((10, 11), (500, 501)) == classes
    assert due_share((10, 10), (500, 500)) == 0
    assert due_share((10, 10), (10_000, 10_001)) < 1e-3
    assert due_share((10, 15), (50, 50)) == pytest.approx(0.5)
    assert 0.9 < due_share((1, 50), (50, 5000)) < 1


def test_small_steps_grow_every_tree_again_while_samples_grow_by_the_factor() -> None:
    steps = [(n, n + 1) for n in range(1000, int(1000 * REFRESH_FACTOR))]
    assert sum(due_share((10, 10), step) for step in steps) == pytest.approx(1, abs=0.01)


def test_trees_are_due_by_the_share() -> None:
    forest = auto().fit(*blobs(400, range(4)))
    counts = [n_refreshed(forest, 100, [c], seed=c) for c in range(4, 9)]
    shares = [due_share((c, c + 1), (100 * c, 100 * c + 100)) for c in range(4, 9)]
    assert sum(counts) == math.floor(8 * sum(shares) + 1e-6)
    assert max(counts) - min(counts) <= 2


def test_a_new_class_is_known_by_one_tree_at_least() -> None:
    forest = auto(n_trees=2).fit(*blobs(400, range(40)))
    assert [n_refreshed(forest, 1, [c], seed=c) for c in range(40, 45)] == [1] * 5
    assert n_refreshed(forest, 1, [3]) == 0


def test_few_samples_of_known_classes_refresh_next_to_nothing() -> None:
    forest = auto().fit(*blobs(400, range(4)))
    assert sum(n_refreshed(forest, 4, [0, 1], seed) for seed in range(10)) == 2


def test_many_samples_of_known_classes_refresh_trees() -> None:
    forest = auto().fit(*blobs(100, range(4)))
    assert n_refreshed(forest, 60, [0, 1, 2, 3]) == 4


def test_columns_without_samples_are_no_growth() -> None:
    forest = auto().fit(*blobs(400, range(4)))
    forest.partial_fit(*blobs(4, [0], seed=1), classes=list(range(12)))
    assert forest.update_report_.n_refreshed == 0
    assert n_refreshed(forest, 100, [9]) == 3


def test_samples_beyond_the_kept_ones_count() -> None:
    forest = auto(storage=Storage(per_class=20)).fit(*blobs(400, range(4)))
    for seed in range(8):
        forest.partial_fit(*blobs(100, range(4), seed))
    # The samples that came, not the 80 that are stored.
    expected = 8 * sum(due_share((4, 4), (n, n + 100)) for n in range(400, 1200, 100))
    assert forest._fitted.history.refresh_due == pytest.approx(expected)


@pytest.mark.parametrize("kind", FORESTS)
def test_every_kind_of_forest_can_refresh_by_itself(kind: Any) -> None:
    forest = kind(4, random_state=0).fit(*blobs(100, range(3)))
    assert n_refreshed(forest, 60, [3, 4]) == 2
    assert set(forest.predict(blobs(60, [3, 4], 5)[0]).tolist()) == {3, 4}


def test_the_same_forest_for_any_number_of_threads() -> None:
    answers = []
    for n_jobs in (1, 2, 3):
        forest = auto(n_jobs=n_jobs).fit(*blobs(200, range(4)))
        for c in range(4, 9):
            forest.partial_fit(*blobs(50, [c, 0], seed=c))
        answers.append(forest.predict_proba(X_QUERY))
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])


def test_a_file_in_between_changes_nothing(tmp_path: Path) -> None:
    kept, stored = (auto().fit(*blobs(200, range(4))) for _ in range(2))
    for c in range(4, 9):
        batch = blobs(50, [c, 0], seed=c)
        kept.partial_fit(*batch)
        stored = reload(stored, tmp_path).partial_fit(*batch)
        np.testing.assert_array_equal(stored.predict_proba(X_QUERY), kept.predict_proba(X_QUERY))


def test_a_forest_without_its_samples_grows_no_tree_again(tmp_path: Path) -> None:
    forest = auto(update="uls").fit(*blobs(200, range(4)))
    loaded = reload(forest, tmp_path, inference_only=True)
    assert n_refreshed(loaded, 50, [4]) == 0
    with pytest.raises(ValueError, match=r"inference_only=True.*update='uls'"):
        loaded.set_params(update=ULS(refresh=0.5)).partial_fit(*blobs(50, [4]))


@pytest.mark.parametrize("wrong", ["Auto", "igt", -0.1, 1.5, None, float("nan"), True])
def test_other_values_of_refresh_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"IGT\.refresh must be"):
        IGT(refresh=wrong)
