"""What the caller expects of a file, and how much memory a small file may take."""

from __future__ import annotations

import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import ModelFileError, NCMClassifier, RLSClassifier
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from tests.estimators.model_files import rewritten


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.evergrow"
    NCMClassifier().fit([[0.0], [1.0]], ["a", "b"]).save(path)
    return path


def test_another_estimator_than_expected_is_refused(saved: Path) -> None:
    assert isinstance(evergrow.load(saved, expect=NCMClassifier), NCMClassifier)
    assert evergrow.load(saved, expect=(RLSClassifier, NCMClassifier)).predict([[0.9]]) == ["b"]
    with pytest.raises(ModelFileError, match="holds 'NCMClassifier', expected is RLSClassifier"):
        evergrow.load(saved, expect=RLSClassifier)
    with pytest.raises(InvalidTypeError, match="expect must be a class"):
        evergrow.load(saved, expect="NCMClassifier")  # type: ignore[arg-type]


def test_a_file_that_is_too_large_is_refused(saved: Path) -> None:
    size = saved.stat().st_size
    evergrow.load(saved, max_bytes=size)
    with pytest.raises(ModelFileError, match=f"has {size} bytes, max_bytes is {size - 1}"):
        evergrow.load(saved, max_bytes=size - 1)


def _load_peak(path: Path) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            evergrow.load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_one_long_name_does_not_take_memory_for_all(saved: Path) -> None:
    def lengthen(header: dict[str, Any], _: dict[str, Any]) -> None:
        header["fitted"]["labels"]["values"] = ["x" * 9_000, *map(str, range(20_000))]

    changed = rewritten(saved, lengthen)
    # An array of all names would take 720 MB.
    assert _load_peak(changed) < 32 * changed.stat().st_size + (64 << 20)


def test_a_header_of_empty_lists_is_refused(saved: Path) -> None:
    def fill(header: dict[str, Any], _: dict[str, Any]) -> None:
        header["feature_names"] = [[]] * 1_100_000

    changed = rewritten(saved, fill)
    assert _load_peak(changed) < 32 * changed.stat().st_size


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    names = ["x" * 10_001, "b"]
    model = NCMClassifier().fit([[0.0], [1.0]], names)
    with pytest.raises(InvalidInputError, match="10001 characters"):
        model.save(tmp_path / "model.evergrow")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("features.npy", "a NumPy file"),
        ("features.npz", "a NumPy file"),
        ("pictures.zip", "a zip file"),
        ("model.pkl", "a pickle"),
    ],
)
def test_another_kind_of_file_is_named(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name.startswith("features"):
        write = np.save if name.endswith("npy") else np.savez
        write(path, np.zeros(3))  # type: ignore[operator]
    elif name == "model.pkl":
        path.write_bytes(pickle.dumps({"a": 1}))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("notes.npy.txt", "no array")
    with pytest.raises(ModelFileError, match=rf"{name}' is not a model file: it looks like {kind}"):
        evergrow.load(path)
