"""A forest that was saved, pickled or copied is updated like the original."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from evergrow import RTST, ULS, NCMForestClassifier
from evergrow.estimators import Bootstrap, Storage
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import CASES, Array, blobs, leaf_counts, stored_ids
from tests.estimators.model_files import reload

X_QUERY, _ = blobs(80, range(7), seed=77)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"storage": Storage(per_class=15)},
    {"storage": Storage(dtype="float16")},
    {"max_samples": 0.6},
    {"max_samples": Bootstrap()},
    {"standardize": False, "storage": Storage(per_class=15, dtype="float16")},
]


def trained(kind: Any, update: Any, n: int = 120, **options: Any) -> Any:
    forest = kind(3, min_samples_leaf=3, update=update, random_state=0, **options)
    return forest.fit(*blobs(n, [0, 1, 2]))


def predict_after_updates(forest: Any) -> Array:
    """Answers after more updates."""
    forest.partial_fit(*blobs(50, [1, 3, 4], seed=1)).forget(classes=[1])
    forest.partial_fit(*blobs(50, [1, 5], seed=2)).rename_classes({0: 9})
    forest.forget(samples=stored_ids(forest)[::7])
    forest._fitted.forest.check()
    found: Array = forest.partial_fit(*blobs(50, [6, 9], seed=3)).predict_proba(X_QUERY)
    return found


@pytest.mark.parametrize(("kind", "update"), CASES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_saving_loading_and_updating_is_updating(
    kind: Any, update: str, options: dict[str, Any], tmp_path: Path
) -> None:
    forest = trained(kind, update, **options).partial_fit(*blobs(60, [0, 3], seed=5))
    loaded = reload(forest, tmp_path)
    np.testing.assert_array_equal(predict_after_updates(loaded), predict_after_updates(forest))
    np.testing.assert_array_equal(stored_ids(loaded), stored_ids(forest))


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_a_forest_goes_on_after_forgetting_and_a_file(
    kind: Any, update: str, tmp_path: Path
) -> None:
    forest = trained(kind, update).forget(samples=range(0, 120, 4))
    forest.forget(classes=[2]).partial_fit(*blobs(30, [8], seed=4))
    loaded = reload(forest, tmp_path)
    np.testing.assert_array_equal(predict_after_updates(loaded), predict_after_updates(forest))


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_a_file_between_any_two_updates_changes_nothing(
    kind: Any, update: str, tmp_path: Path
) -> None:
    kept, stored = (trained(kind, update, n=30, storage=Storage(per_class=10)) for _ in range(2))
    for seed in range(8):
        X, y = blobs(25, [seed % 4, seed % 3], seed)
        kept.partial_fit(X, y)
        stored = reload(stored, tmp_path).partial_fit(X, y)
        np.testing.assert_array_equal(stored.predict_proba(X_QUERY), kept.predict_proba(X_QUERY))


@pytest.mark.parametrize("kind", FORESTS)
def test_a_strategy_that_is_a_value_comes_back(kind: Any, tmp_path: Path) -> None:
    forest = trained(kind, RTST(share=0.3, nodes="uniform"))
    loaded = reload(forest, tmp_path)
    assert loaded.update == RTST(share=0.3, nodes="uniform")
    np.testing.assert_array_equal(predict_after_updates(loaded), predict_after_updates(forest))


def test_options_that_are_numpy_numbers_come_back(tmp_path: Path) -> None:
    update = RTST(share=np.float32(0.5), refresh=np.float64(0.25))  # type: ignore[arg-type]
    assert reload(trained(NCMForestClassifier, update), tmp_path).update == update


@pytest.mark.parametrize("wrong", [{"update": "rsut"}, {"update": 5}, {"n_estimators": 0}], ids=str)
def test_a_file_that_could_not_be_loaded_is_not_written(
    wrong: dict[str, Any], tmp_path: Path
) -> None:
    forest = trained(NCMForestClassifier, "igt").set_params(**wrong)
    with pytest.raises(ValueError, match=rf"{next(iter(wrong))} must be .*, got"):
        forest.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", FORESTS)
def test_a_forest_without_its_samples_only_counts(kind: Any, tmp_path: Path) -> None:
    forest = trained(kind, ULS(refresh=0.0))
    loaded = reload(forest, tmp_path, inference_only=True)
    batch = blobs(50, [1, 3], seed=1)
    np.testing.assert_array_equal(
        loaded.partial_fit(*batch).predict_proba(X_QUERY),
        forest.partial_fit(*batch).predict_proba(X_QUERY),
    )
    assert leaf_counts(loaded, 0).tolist() == leaf_counts(forest, 0).tolist()
    again = reload(loaded, tmp_path)
    np.testing.assert_array_equal(again.predict_proba(X_QUERY), loaded.predict_proba(X_QUERY))


@pytest.mark.parametrize("n", [30, 120])
@pytest.mark.parametrize(("kind", "update"), [case for case in CASES if case[1] != "uls"])
def test_a_forest_without_its_samples_refuses_what_needs_them(
    kind: Any, update: str, n: int, tmp_path: Path
) -> None:
    loaded = reload(trained(kind, update, n), tmp_path, inference_only=True)
    state = dict(vars(loaded))
    attempts: list[Callable[[], Any]] = [
        lambda: loaded.partial_fit(*blobs(50, [1, 3])),
        lambda: loaded.forget(classes=[1]),
        lambda: loaded.forget(samples=[1]),
    ]
    for attempt in attempts:
        with pytest.raises(ValueError, match=r"inference_only=True.*update='uls'"):
            attempt()
    assert vars(loaded) == state
    with pytest.raises(ValueError, match="inference_only=True"):
        loaded.set_params(update=ULS(refresh=0.1)).partial_fit(*blobs(50, [1, 3]))
    loaded.set_params(update__refresh=0.0).partial_fit(*blobs(50, [1, 3]))
    assert leaf_counts(loaded, 0).sum() == n + 50


@pytest.mark.parametrize(("kind", "update"), CASES)
@pytest.mark.parametrize("how", [copy.deepcopy, lambda forest: pickle.loads(pickle.dumps(forest))])
def test_a_copy_goes_on_alone(kind: Any, update: str, how: Callable[[Any], Any]) -> None:
    forest = trained(kind, update, storage=Storage(per_class=20))
    before, state = forest.predict_proba(X_QUERY), forest._fitted
    found = predict_after_updates(how(forest))
    assert forest._fitted is state
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), before)
    forest._fitted.forest.check()
    np.testing.assert_array_equal(predict_after_updates(forest), found)


@pytest.mark.parametrize("kind", FORESTS)
def test_tidying_changes_no_answer_and_no_later_update(kind: Any) -> None:
    plain, tidy = (trained(kind, "rtst").forget(samples=range(0, 120, 3)) for _ in range(2))
    tidy.compact()._fitted.forest.check()
    np.testing.assert_array_equal(tidy.predict_proba(X_QUERY), plain.predict_proba(X_QUERY))
    assert tidy.nbytes <= plain.nbytes
    np.testing.assert_array_equal(predict_after_updates(tidy), predict_after_updates(plain))


def test_an_early_forest_goes_on_after_a_file(tmp_path: Path) -> None:
    X, y = blobs(60, [0, 1, 2])
    forest = NCMForestClassifier(3, min_samples_leaf=2, random_state=0).fit(X[:30], y[:30])
    loaded = reload(forest, tmp_path)
    np.testing.assert_array_equal(
        loaded.partial_fit(X[30:], y[30:]).predict_proba(X_QUERY),
        forest.partial_fit(X[30:], y[30:]).predict_proba(X_QUERY),
    )


def test_attributes_of_the_last_call_are_not_saved(tmp_path: Path) -> None:
    loaded = reload(trained(NCMForestClassifier, "igt"), tmp_path)
    assert not hasattr(loaded, "sample_ids_")
    assert not hasattr(loaded, "update_report_")
    assert loaded.partial_fit(*blobs(5, [0])).sample_ids_.tolist() == list(range(120, 125))


def test_a_clone_knows_nothing() -> None:
    forest = clone(trained(NCMForestClassifier, "rust").partial_fit(*blobs(20, [5])))
    assert not forest.__sklearn_is_fitted__()
    assert forest.partial_fit(*blobs(60, [7, 8])).classes_.tolist() == [7, 8]
