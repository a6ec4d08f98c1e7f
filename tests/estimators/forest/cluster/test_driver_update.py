"""Updates of trees that stay with workers are those made here, and depend on no worker."""

from __future__ import annotations

import copy
import gc
from typing import Any

import numpy as np
import pytest

from evergrow import NCMForestClassifier, SubcategoryForestClassifier, SVMForestClassifier
from evergrow.estimators.forest.strategy import STRATEGIES
from evergrow.foundation.engine import Capacity, LocalEngine, use_engine
from tests.estimators.forest.blobs import blobs
from tests.estimators.model_files import reload
from tests.foundation.engines import Shuffled

X, Y = blobs(900, range(6))
MORE = [blobs(60, [1, 6, 7], seed=1), blobs(60, [2, 3], seed=2), blobs(60, [6, 8], seed=3)]

OPTIONS: list[dict[str, Any]] = [
    *({"update": name} for name in STRATEGIES),
    {"update": "igt", "refresh": 0.3},
    {"update": "igt", "refresh": "auto"},
    {"update": "rust", "keep_per_class": 40},
    {"update": "rtst", "sample_dtype": "float16", "max_samples": 0.5},
    {"update": "igt", "bootstrap": True},
]


def forest_of(**options: Any) -> NCMForestClassifier:
    return NCMForestClassifier(7, random_state=3, **options)


def kept_elsewhere(updates: str = "workers") -> Shuffled:
    return Shuffled(updates=updates)


def check_same(found: Any, expected: Any) -> None:
    mine, other = found._fitted.forest, expected._fitted.forest
    assert len(mine) == len(other)
    # Not the comparisons it took: scores that RUST keeps save some, for the first who updates.
    for tree in range(len(mine)):
        for name, array in mine.tree_arrays(tree).items():
            assert np.array_equal(array, other.tree_arrays(tree)[name]), (tree, name)
    mine.check()
    histories = [
        {**vars(one._fitted.history), "early": None, "ages": None} for one in (found, expected)
    ]
    assert histories[0] == histories[1]
    for name in ("taught", "came"):
        ages = [getattr(one._fitted.history.ages, name) for one in (found, expected)]
        np.testing.assert_array_equal(*ages)
    assert np.array_equal(found._fitted.stored_ids, expected._fitted.stored_ids)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_updates_are_those_made_here(options: dict[str, Any]) -> None:
    here, there = forest_of(**options).fit(X, Y), forest_of(**options).fit(X, Y)
    engine = kept_elsewhere()
    for batch in MORE:
        here.partial_fit(*batch)
        with use_engine(engine):
            there.partial_fit(*batch)
        check_same(there, here)
        for name, value in vars(here.update_report_).items():
            if not name.endswith("seconds"):
                assert getattr(there.update_report_, name) == value, name
    # Trees were sent once.
    assert sorted(engine.loads) == [0, 1, 2]


def test_weights_go_to_the_workers() -> None:
    options: dict[str, Any] = {"class_weight": "balanced", "max_samples": 0.5, "refresh": 0.3}
    weights = np.random.default_rng(0).exponential(1.0, len(Y))
    here = forest_of(**options).fit(X, Y, sample_weight=weights)
    engine = kept_elsewhere()
    with use_engine(engine):
        there = forest_of(**options).fit(X, Y, sample_weight=weights)
    check_same(there, here)
    for x, y in MORE:
        here.partial_fit(x, y, sample_weight=y + 0.5)
        with use_engine(engine):
            there.partial_fit(x, y, sample_weight=y + 0.5)
        check_same(there, here)


def test_other_forests_are_updated_likewise() -> None:
    here, there = (SVMForestClassifier(4, random_state=0).fit(X, Y) for _ in range(2))
    for batch in MORE:
        here.partial_fit(*batch)
        with use_engine(kept_elsewhere()):
            there.partial_fit(*batch)
    check_same(there, here)


def test_coarse_and_fine_classes_are_updated_likewise() -> None:
    labels = np.column_stack([Y // 3, Y])
    here, there = (SubcategoryForestClassifier(4, random_state=0).fit(X, labels) for _ in range(2))
    more = MORE[0][0], np.column_stack([MORE[0][1] // 3, MORE[0][1]])
    with use_engine(kept_elsewhere()):
        there.partial_fit(*more)
    assert np.array_equal(here.partial_fit(*more).predict_proba(X), there.predict_proba(X))


def test_samples_that_are_forgotten_in_between_are_forgotten_there() -> None:
    here, there = (
        forest_of(update="rust").fit(X, Y),
        forest_of(update="rust").fit(X, Y),
    )
    with use_engine(kept_elsewhere()):
        for forest in (there, here):
            forest.partial_fit(*MORE[0])
            forest.forget(samples=range(100, 200))
            forest.partial_fit(*MORE[1])
            forest.forget(classes=[2])
            with use_engine(None if forest is here else kept_elsewhere()):
                forest.partial_fit(*MORE[2])
    check_same(there, here)


def test_a_copy_goes_its_own_way() -> None:
    here, first = forest_of().fit(X, Y), forest_of().fit(X, Y)
    with use_engine(kept_elsewhere()):
        first.partial_fit(*MORE[0])
        second = copy.deepcopy(first)
        first.partial_fit(*MORE[1])
        second.partial_fit(*MORE[2])
    check_same(second, copy.deepcopy(here).partial_fit(*MORE[0]).partial_fit(*MORE[2]))
    check_same(first, here.partial_fit(*MORE[0]).partial_fit(*MORE[1]))


def test_a_worker_that_lost_its_trees_is_given_them_again() -> None:
    here, there = forest_of().fit(X, Y), forest_of().fit(X, Y)
    engine = kept_elsewhere()
    with use_engine(engine):
        there.partial_fit(*MORE[0])
        for key in [key for key in engine.values if key[1] == 1]:
            del engine.values[key]
        there.partial_fit(*MORE[1])
    check_same(there, here.partial_fit(*MORE[0]).partial_fit(*MORE[1]))
    assert sorted(engine.loads) == [0, 1, 1, 2]


def test_an_update_that_fails_leaves_all_as_it_was() -> None:
    here, there = forest_of().fit(X, Y), forest_of().fit(X, Y)
    engine = kept_elsewhere()
    asked: list[int] = []

    def fail_at_the_last(place: int) -> None:
        asked.append(place)
        if len(asked) == 3:
            raise KeyboardInterrupt

    with use_engine(engine):
        there.partial_fit(*MORE[0])
        before, kept = there._fitted, dict(engine.values)
        engine.before_change = fail_at_the_last
        with pytest.raises(KeyboardInterrupt):
            there.partial_fit(*MORE[1])
        assert there._fitted is before
        assert engine.values == kept
        there.partial_fit(*MORE[2])
    check_same(there, here.partial_fit(*MORE[0]).partial_fit(*MORE[2]))
    assert len(engine.loads) == 3


def test_trees_are_released_with_the_forest() -> None:
    engine = kept_elsewhere()
    forest = forest_of().fit(X, Y)
    with use_engine(engine):
        for batch in MORE:
            forest.partial_fit(*batch)
            gc.collect()
            assert len({name for name, _ in engine.values}) == 1
    del forest
    gc.collect()
    assert not engine.values


def test_only_what_changed_comes_back() -> None:
    forest = forest_of(update="uls").fit(X, Y)
    engine = kept_elsewhere()
    with use_engine(engine):
        forest.partial_fit(X[:1], Y[:1])
    assert sum(engine.sizes) < forest._fitted.forest.nbytes / 20


class UpdatingLocalEngine(LocalEngine):
    capacity = Capacity(updates="workers")


def test_the_local_engine_holds_trees_as_well() -> None:
    engine = UpdatingLocalEngine()
    here, there = forest_of().fit(X, Y), forest_of().fit(X, Y)
    for batch in MORE:
        with use_engine(engine):
            there.partial_fit(*batch)
        here.partial_fit(*batch)
    check_same(there, here)


@pytest.mark.parametrize(
    ("options", "n_workers", "expected"),
    [
        ({"update": "rtst"}, 8, [False, True, True]),
        ({"update": "rust"}, 4, [False, True, True]),
        ({"update": "rtst"}, 3, [False, False, False]),
        ({"update": "rtst", "n_jobs": 2}, 4, [False, False, False]),
        ({"update": "igt"}, 8, [False, False, False]),
        ({"update": "rtst", "memory_limit": "1GiB"}, 8, [False, False, False]),
    ],
    ids=str,
)
def test_trees_go_to_workers_where_that_pays(
    options: dict[str, Any], n_workers: int, expected: list[bool]
) -> None:
    forest = forest_of(**options).fit(X, Y)
    engine = Shuffled(updates="auto", n_workers=n_workers)
    was_there = []
    with use_engine(engine):
        for batch in MORE:
            forest.partial_fit(*batch)
            was_there.append("updating groups of trees" in {job.description for job in engine.jobs})
    assert was_there == expected


def test_a_forest_that_is_only_used_for_answers_is_updated_here(tmp_path: Any) -> None:

    forest = reload(forest_of(update="uls").fit(X, Y), tmp_path, inference_only=True)
    engine = kept_elsewhere()
    with use_engine(engine):
        forest.partial_fit(*MORE[0])
    assert engine.jobs == []
