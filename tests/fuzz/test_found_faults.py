"""What forged files and fuzzing have found: refused, or works."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import evergrow
from evergrow import ImageClassifier, InvalidInputError, ModelFileError, RLSClassifier
from evergrow.workspace import Workspace, WorkspaceLockedError
from tests.fuzz.files import decode, encode
from tests.fuzz.models import IMAGE_Y, IMAGES, NEW_X, NEW_Y, X, files_of
from tests.fuzz.targets.workspace import _write, seeds
from tests.vision.classifier.pictures import MeanColours

Change = Callable[[dict[str, Any], dict[str, Any]], Any]


def changed(kind: str, number: int, change: Change, folder: Path) -> Path:
    """A model file with changed content and valid hashes."""
    content = decode(files_of(kind)[number])
    assert content is not None
    change(*content)
    path = folder / "forged.evergrow"
    path.write_bytes(encode(*content))
    return path


def put(name: str, place: Any, value: Any) -> Change:
    """Set an entry of an array."""
    return lambda _, tensors: tensors[name].__setitem__(place, value)


def test_counts_at_the_limit_can_be_loaded_but_not_grow_past_it(tmp_path: Path) -> None:
    path = changed("class means", 0, put("moments.class_examples", 0, 2**53 - 24), tmp_path)
    model = evergrow.load(path)
    model.save(path)
    evergrow.load(path).rename_classes({"a": "b"}).save(path)
    model.partial_fit(NEW_X, NEW_Y)
    with pytest.raises(InvalidInputError, match=r"cannot be saved: .* must add up to"):
        model.save(path)


def test_a_file_does_not_choose_how_many_threads_are_started(tmp_path: Path) -> None:
    def change(header: dict[str, Any], _: dict[str, Any]) -> None:
        header["parameters"]["n_jobs"] = 1000

    bag = evergrow.load(changed("bag of words", 2, change, tmp_path))
    assert bag.n_jobs == max(64, os.cpu_count() or 1)
    assert len(bag.transform(IMAGES)) == len(IMAGES)


def test_more_threads_than_any_machine_has_are_refused(tmp_path: Path) -> None:
    def change(header: dict[str, Any], _: dict[str, Any]) -> None:
        header["parameters"]["n_jobs"] = 20_000

    with pytest.raises(ModelFileError, match="asks for 20000 threads"):
        evergrow.load(changed("bag of words", 2, change, tmp_path))


def test_threads_that_are_of_use_stay_as_saved(tmp_path: Path) -> None:
    def change(header: dict[str, Any], _: dict[str, Any]) -> None:
        header["parameters"]["n_jobs"] = 3

    assert evergrow.load(changed("forest", 0, change, tmp_path)).n_jobs == 3


def test_a_plane_without_a_normal_is_explained(tmp_path: Path) -> None:
    def change(_: dict[str, Any], tensors: dict[str, Any]) -> None:
        for name in [n for n in tensors if n.endswith((".halves", ".bytes"))]:
            tensors[name][:] = 0

    forest = evergrow.load(changed("forest", 5, change, tmp_path))
    assert forest.explain(X[0]).trees[0].decisions[0].distance == np.inf


def test_descriptors_of_other_words_are_no_base_for_new_ones(tmp_path: Path) -> None:
    path = changed("clustering forest", 0, put("descriptors.rows", slice(None), 0.0), tmp_path)
    forest = evergrow.load(path)
    before = forest.predict_proba(X)
    with pytest.raises(InvalidInputError, match="not those that the words were learnt from"):
        forest.partial_fit(NEW_X, NEW_Y)
    np.testing.assert_array_equal(forest.predict_proba(X), before)
    forest.save(path)
    evergrow.load(path)


def test_features_of_images_may_begin_with_a_step_that_does_nothing() -> None:
    features = make_pipeline("passthrough", MeanColours())
    model = ImageClassifier(features, RLSClassifier(random_state=0)).fit(IMAGES, IMAGE_Y)
    assert len(model.predict(IMAGES)) == len(IMAGES)


DAMAGED = {
    "an event that is not JSON": ("""'{"example": 1,""", """'"example": 1,"""),
    "an example moved out of a class that it was not in": (
        "VALUES(10,6,4,NULL,5,NULL)", "VALUES(10,6,1,NULL,5,NULL)"
    ),
    "an example of no class": ("VALUES(12,6,5,NULL,1,2)", "VALUES(12,6,NULL,NULL,NULL,NULL)"),
    "examples of a class that is not listed": (
        "INSERT INTO \"class\" VALUES(5,", "INSERT INTO \"class\" VALUES(77,"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_database_is_refused_and_released(case: str, tmp_path: Path) -> None:
    right, wrong = DAMAGED[case]
    content = list(seeds().values())[-1].decode()
    escaped_right, escaped_wrong = (text.replace('"', '\\"') for text in (right, wrong))
    damaged = content.replace(escaped_right, escaped_wrong)
    assert damaged != content
    folder = tmp_path / "workspace"
    assert _write(folder, damaged.encode())
    for _ in range(2):
        # A lock that was not released would be another error the second time.
        with pytest.raises(evergrow.WorkspaceError) as caught, Workspace.open(folder) as workspace:
            workspace.events()
        assert not isinstance(caught.value, WorkspaceLockedError)
