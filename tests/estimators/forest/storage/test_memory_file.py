"""Samples in a named file give the same forest, and a foreign file is never overwritten."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import NCMForestClassifier
from evergrow.estimators.forest.change import addition, growth, removal
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import CASES, blobs, leaf_counts, stored_ids
from tests.estimators.model_files import reload

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no memory in a file there")

X_QUERY, Y_QUERY = blobs(80, range(5), seed=77)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "samples"


def trained(kind: Any, memory: Any, **options: Any) -> Any:
    options = {"min_samples_leaf": 3, "random_state": 0, **options}
    return kind(3, memory=memory, **options).fit(*blobs(150, [0, 1, 2]))


@pytest.mark.parametrize(("kind", "update"), CASES)
@pytest.mark.parametrize(
    "options", [{}, {"sample_dtype": "float16"}, {"keep_per_class": 20}], ids=str
)
def test_a_forest_with_a_file_learns_what_one_without_learns(
    kind: Any, update: str, options: dict[str, Any], path: Path
) -> None:
    forests = []
    for memory in (None, path):
        forest = trained(kind, memory, update=update, **options)
        forest.partial_fit(*blobs(90, [1, 3], seed=1))
        forest.forget(classes=[0], samples=stored_ids(forest)[::9])
        forest.partial_fit(*blobs(90, [0, 4], seed=2))
        forest._fitted.forest.check()
        forests.append(forest)
    plain, mapped = forests
    np.testing.assert_array_equal(mapped.classes_, plain.classes_)
    assert leaf_counts(mapped, 0).tolist() == leaf_counts(plain, 0).tolist()
    # Means of one sample are rounded where no row may be referred to.
    assert abs(mapped.score(X_QUERY, Y_QUERY) - plain.score(X_QUERY, Y_QUERY)) < 0.1
    if kind is not NCMForestClassifier:
        np.testing.assert_array_equal(mapped.predict_proba(X_QUERY), plain.predict_proba(X_QUERY))


def test_the_file_goes_with_the_model(path: Path, tmp_path: Path) -> None:
    forest = trained(NCMForestClassifier, path).partial_fit(*blobs(50, [7]))
    assert os.listdir(tmp_path) == ["samples"]
    del forest
    gc.collect()
    assert os.listdir(tmp_path) == []


def test_a_second_fit_takes_the_place_of_the_first(path: Path, tmp_path: Path) -> None:
    forest = trained(NCMForestClassifier, str(path)).fit(*blobs(80, [3, 4]))
    forest.partial_fit(*blobs(80, [5]))
    assert os.listdir(tmp_path) == ["samples"]
    assert forest.classes_.tolist() == [3, 4, 5]


def test_the_first_few_samples_may_come_one_by_one(path: Path, tmp_path: Path) -> None:
    X, y = blobs(70, [0, 1])
    forest = NCMForestClassifier(2, memory=path, random_state=0)
    for x, label in zip(X, y, strict=True):
        forest.partial_fit(x[None], [label])
    assert os.listdir(tmp_path) == ["samples"]
    assert leaf_counts(forest, 0).sum() == 70


def vanish(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    os.truncate(path, 100)


def replace(path: Path) -> None:
    path.unlink()
    path.write_text("something else")


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize(
    ("damage", "message"),
    [(vanish, "deleted"), (truncate, "was truncated"), (replace, "another file replaced it")],
)
def test_a_damaged_file_stops_updates_but_not_predictions(
    kind: Any, damage: Callable[[Path], None], message: str, path: Path, tmp_path: Path
) -> None:
    forest = trained(kind, path)
    before, state = forest.predict_proba(X_QUERY), dict(vars(forest))
    damage(path)
    attempts: list[Callable[[], Any]] = [
        lambda: forest.partial_fit(*blobs(20, [1])),
        lambda: forest.forget(classes=[1]),
        lambda: forest.forget(samples=[1]),
        lambda: forest.rename_classes({1: 9}),
        lambda: forest.save(tmp_path / "model"),
        lambda: pickle.dumps(forest),
    ]
    for attempt in attempts:
        with pytest.raises(OSError, match=f"{message}.*still predicts"):
            attempt()
    assert vars(forest) == state
    np.testing.assert_array_equal(forest.compact().predict_proba(X_QUERY), before)
    forest.explain(X_QUERY[0])
    loaded = reload(forest, tmp_path, inference_only=True)
    np.testing.assert_array_equal(loaded.predict_proba(X_QUERY), before)


def test_a_foreign_file_is_refused_and_untouched(path: Path, tmp_path: Path) -> None:
    path.write_text("my thesis")
    forest = NCMForestClassifier(2, memory=path)
    with pytest.raises(ValueError, match=r"memory must name a new file.*holds something else"):
        forest.fit(*blobs(80, [0, 1]))
    assert path.read_text() == "my thesis"
    assert os.listdir(tmp_path) == ["samples"]


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"no folder.samples"):
        NCMForestClassifier(2, memory=tmp_path / "no folder" / "samples").fit(*blobs(80, [0, 1]))


@pytest.mark.parametrize("memory", [5, b"samples", "", True])
def test_an_invalid_path_is_refused(memory: Any) -> None:
    with pytest.raises(ValueError, match="memory must be None or a path, got"):
        NCMForestClassifier(2, memory=memory).fit(*blobs(80, [0, 1]))


def test_a_failure_leaves_no_file_behind_and_the_model_as_it_was(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def broken(*args: object) -> Any:
        yield None
        raise RuntimeError("display broke")

    forest = trained(NCMForestClassifier, path)
    before = forest.predict_proba(X_QUERY)
    with monkeypatch.context() as patch:
        patch.setattr(addition, "progress_bar", broken)
        patch.setattr(growth, "progress_bar", broken)
        for train in (forest.partial_fit, forest.fit):
            with pytest.raises(RuntimeError, match="display broke"):
                train(*blobs(80, [7, 8]))
    gc.collect()
    assert os.listdir(tmp_path) == ["samples"]
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), before)
    expected = trained(NCMForestClassifier, tmp_path / "other").partial_fit(*blobs(80, [7, 8]))
    found = forest.partial_fit(*blobs(80, [7, 8])).predict_proba(X_QUERY)
    np.testing.assert_array_equal(found, expected.predict_proba(X_QUERY))


def test_a_forget_that_fails_leaves_the_file_to_its_model(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("out of memory")

    X, y = blobs(45, [0, 1])
    forest = NCMForestClassifier(2, memory=path, max_samples=40, random_state=0).fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(removal, "regrow_early", fail)
        with pytest.raises(RuntimeError, match="out of memory"):
            forest.forget(samples=range(10))
    forest.forget(samples=[0])
    assert leaf_counts(forest, 0).sum() == 40


def test_early_samples_may_become_fewer_than_trees_draw(path: Path) -> None:
    X, y = blobs(45, [0, 1])
    forest = NCMForestClassifier(2, memory=path, max_samples=40, random_state=0).fit(X, y)
    forest.forget(samples=range(10))
    assert leaf_counts(forest, 0).sum() == 35


@pytest.mark.parametrize("first", ["partial_fit", "forget", "rename"])
def test_a_copy_answers_but_cannot_go_on_after_the_original_did(first: str, path: Path) -> None:
    forest = trained(NCMForestClassifier, path)
    twin = copy.deepcopy(forest)
    before = twin.predict_proba(X_QUERY)
    {
        "partial_fit": lambda: forest.partial_fit(*blobs(50, [8], seed=1)),
        "forget": lambda: forest.forget(classes=[0]),
        "rename": lambda: forest.rename_classes({0: 9}),
    }[first]()
    for attempt in (
        lambda: twin.partial_fit(*blobs(50, [9], seed=1)),
        lambda: twin.forget(classes=[1]),
        lambda: twin.rename_classes({1: 7}),
    ):
        with pytest.raises(OSError, match="a copy of the model has used it"):
            attempt()
    np.testing.assert_array_equal(twin.predict_proba(X_QUERY), before)
    forest.partial_fit(*blobs(50, [9], seed=2))._fitted.forest.check()


@pytest.mark.parametrize("how", ["pickle", "file"])
def test_a_model_that_was_stored_goes_on_without_the_file(
    how: str, path: Path, tmp_path: Path
) -> None:
    forest = trained(NCMForestClassifier, path)
    if how == "pickle":
        other = pickle.loads(pickle.dumps(forest))
    else:
        other = reload(forest, tmp_path)
        assert other.memory is None
    before = forest.predict_proba(X_QUERY)
    other.partial_fit(*blobs(50, [8], seed=1))
    np.testing.assert_array_equal(forest.predict_proba(X_QUERY), before)
    assert forest.partial_fit(*blobs(50, [8], seed=1)).classes_.tolist() == [0, 1, 2, 8]
