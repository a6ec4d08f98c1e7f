"""Edge cases of updates: inconsistent files, copies in other threads, refreshed trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import ULS, AxisForestClassifier, NCMForestClassifier
from evergrow.estimators import Storage
from tests.estimators.forest.blobs import blobs
from tests.estimators.model_files import check_refused, reload
from tests.reference.ncm_forest import to_bytes

X, Y = blobs(200, [0, 1, 2])


def test_a_file_that_names_another_kind_of_forest_is_refused(tmp_path: Path) -> None:
    reload(AxisForestClassifier(2, random_state=0).fit(X, Y), tmp_path)

    def lie(header: dict[str, Any], tensors: dict[str, Any]) -> None:
        header["estimator"] = "NCMForestClassifier"
        header["parameters"] = {}

    check_refused(tmp_path / "model.evergrow", lie, match="another kind of forest")


def test_a_file_whose_leaves_hold_more_than_they_count_is_refused(tmp_path: Path) -> None:
    reload(NCMForestClassifier(1, random_state=0).fit(X, Y), tmp_path)

    def count_one_less(header: dict[str, Any], tensors: dict[str, Any]) -> None:
        counts = tensors["tree.0.count"].copy()
        counts[int(np.argmax(counts))] -= 1
        tensors["tree.0.count"] = counts

    check_refused(tmp_path / "model.evergrow", count_one_less, match="more rows than it counts")


def test_forgetting_between_updates_does_not_skip_a_tree_to_refresh() -> None:
    forest = NCMForestClassifier(4, update=ULS(refresh=0.25), random_state=0).fit(X, Y)
    refreshed = []
    for i in range(4):
        before = forest._fitted.forest.n_comparisons
        forest.partial_fit(X[:1], Y[:1]).forget(samples=[i])
        spent = np.subtract(forest._fitted.forest.n_comparisons, before)
        refreshed.append(int(np.argmax(spent)))
    assert refreshed == [0, 1, 2, 3]


def test_forgotten_samples_leave_no_copy_in_nodes() -> None:
    forest = NCMForestClassifier(8, min_samples_leaf=1, random_state=0)
    rng = np.random.default_rng(0)
    forest.fit(rng.normal(size=(300, 8)), rng.integers(0, 30, 300))
    scaled = forest._fitted.forest.samples.take(np.arange(300, dtype=np.int32))
    forest.forget(samples=np.arange(60))
    copies = {to_bytes(row)[0].tobytes() for row in scaled[:60]}
    for t in range(8):
        stored = forest._fitted.forest.tree_arrays(t)["bytes"].reshape(-1, 16)[:, :8]
        assert not copies & {row.tobytes() for row in stored}


def test_uls_without_samples_does_not_touch_nodes(tmp_path: Path) -> None:
    forest = NCMForestClassifier(
        3, min_samples_leaf=1, storage=Storage(per_class=20), update="uls", random_state=0
    ).fit(X, Y)
    loaded = reload(forest, tmp_path, inference_only=True)
    before = [loaded._fitted.forest.tree_arrays(t)["centroid_source"] for t in range(3)]
    loaded.partial_fit(X, Y)
    for t in range(3):
        after = loaded._fitted.forest.tree_arrays(t)["centroid_source"]
        np.testing.assert_array_equal(after, before[t])


def test_a_report_of_few_samples_names_only_the_new_classes() -> None:
    forest = NCMForestClassifier(3, random_state=0).partial_fit(X[:20], Y[:20])
    forest.partial_fit(X[:2], [7, 8])
    assert forest.update_report_.n_samples == 2
    assert forest.update_report_.n_new_classes == 2


def test_the_ids_of_stored_samples_are_known_after_loading(tmp_path: Path) -> None:
    forest = NCMForestClassifier(2, random_state=0).fit(X, Y).forget(samples=[3])
    loaded = reload(forest, tmp_path)
    assert loaded.stored_ids_.tolist() == [i for i in range(200) if i != 3]
    assert 4 not in loaded.forget(samples=[4]).stored_ids_


def test_another_sample_precision_needs_a_new_fit() -> None:
    forest = NCMForestClassifier(2, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"Storage\.dtype is 'float16'"):
        forest.set_params(storage=Storage(dtype="float16")).partial_fit(X[:2], Y[:2])


@pytest.mark.parametrize("name", [1.5, float("inf")])
def test_a_class_cannot_be_renamed_to_a_fraction(name: float) -> None:
    forest = NCMForestClassifier(2, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="integers or strings"):
        forest.rename_classes({0: name})


def test_names_must_be_a_mapping() -> None:
    forest = NCMForestClassifier(2, random_state=0).fit(X, Y)
    with pytest.raises(TypeError, match="must map old to new"):
        forest.rename_classes([(0, 5)])  # type: ignore[arg-type]


def test_a_first_batch_may_be_smaller_than_what_trees_draw_later() -> None:
    forest = NCMForestClassifier(2, max_samples=20, random_state=0)
    forest.partial_fit(X[:10], Y[:10]).partial_fit(X[10:100], Y[10:100])
    assert forest._fitted.history.n_seen == 100
