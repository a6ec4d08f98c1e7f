"""Files of every format version and kind of estimator still load."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import evergrow
from evergrow.storage.models.format import FORMAT_VERSION
from tests.conftest import Arrays
from tests.storage.model_files.make import FOLDER, MODELS, answers


@pytest.mark.parametrize("path", sorted(FOLDER.glob("format*.evergrow")), ids=lambda p: p.name)
def test_a_stored_file_answers_as_it_did(path: Path, digits: Arrays) -> None:
    expected = np.load(path.with_suffix(".npy"))
    found = answers(evergrow.load(path), digits[1][:50])
    # Other processors round differently: now and then a sample takes another leaf of one tree.
    close = np.isclose(found, expected, rtol=1e-6, atol=1e-9).all(axis=1)
    assert close.mean() >= 0.9


def test_a_stored_file_can_be_taught_more(digits: Arrays) -> None:
    X, _, y, _ = digits
    for path in sorted(FOLDER.glob("format*.evergrow")):
        model = evergrow.load(path)
        if hasattr(model, "partial_fit"):
            model.partial_fit(X[:3], y[:3])


def test_one_file_of_each_kind_is_stored_per_format_version() -> None:
    stored = {path.stem for path in FOLDER.glob("*.evergrow")}
    versions = range(1, FORMAT_VERSION + 1)
    assert stored == {f"format{version}_{name}" for version in versions for name in MODELS}
