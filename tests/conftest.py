"""Data that many tests share."""

from __future__ import annotations

import os

# scikit-learn checks array API input only where SciPy supports it, and SciPy asks on import.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from evergrow import (
    AxisForestClassifier,
    LinearForestClassifier,
    NCMForestClassifier,
    SVMForestClassifier,
)
from tests.budget import budget

# A run that must be repeatable tries the same cases every time; others keep looking for new ones.
settings.register_profile(
    "evergrow",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    max_examples=budget(settings.default.max_examples),
)
settings.load_profile("evergrow")

# Every forest, with its least accuracy on digits: on the test samples, and in cross-validation of
# a small forest.
ACCURACY = {
    NCMForestClassifier: (0.97, 0.7),
    AxisForestClassifier: (0.955, 0.65),
    LinearForestClassifier: (0.945, 0.55),
    SVMForestClassifier: (0.96, 0.65),
}
FORESTS = list(ACCURACY)

Arrays = tuple[np.ndarray[Any, Any], ...]


@pytest.fixture(scope="session")
def digits() -> Arrays:
    """X_train, X_test, y_train, y_test of scikit-learn's digits."""
    X, y = load_digits(return_X_y=True)
    return tuple(train_test_split(X, y, random_state=0))


@pytest.fixture(scope="session")
def small_forest(digits: Arrays) -> NCMForestClassifier:
    """A fitted forest; tests must not change it."""
    X, _, y, _ = digits
    return NCMForestClassifier(8, random_state=0).fit(X, y)


@pytest.fixture(scope="session")
def measuring_data() -> Path:
    """The folder of measuring data, or a skip."""
    folder = os.environ.get("EVERGROW_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("EVERGROW_DATA does not name a folder of measuring data")
    return Path(folder)
