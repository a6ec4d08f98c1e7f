"""Samples in shards that only some of are trained on are not read into memory for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evergrow import write_shards
from evergrow.estimators.subcategory import learning
from evergrow.storage.shards import ChosenRows


def test_samples_that_are_trained_on_stay_on_disk(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    used = np.arange(30) % 3 > 0
    shards = write_shards(tmp_path / "shards", [X])
    chosen = learning._part(shards, used)  # type: ignore[arg-type]
    assert isinstance(chosen, ChosenRows)
    np.testing.assert_array_equal(np.asarray(chosen), X[used])
