"""Data to measure on: the folder in EVERGROW_DATA when set, generated mixtures otherwise."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Split:
    """Training and test data with a name for the tables."""

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def head(self, n_train: int, n_test: int) -> Split:
        """The first rows only."""
        return Split(
            self.name,
            self.X[:n_train],
            self.y[:n_train],
            self.X_test[:n_test],
            self.y_test[:n_test],
        )


def mixture(n_train: int, n_features: int, n_classes: int, n_test: int = 5000) -> Split:
    """Overlapping Gaussian classes, the same for every run."""
    rng = np.random.default_rng(0)
    n = n_train + n_test
    y = rng.integers(0, n_classes, n)
    centres = 0.35 * rng.standard_normal((n_classes, n_features), dtype=np.float32)
    X = rng.standard_normal((n, n_features), dtype=np.float32)
    X += centres[y]
    name = f"generated {n_train // 1000}k x {n_features}, {n_classes} classes"
    return Split(name, X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def data_file(name: str) -> Path | None:
    """A file of the folder in EVERGROW_DATA, if it is there."""
    folder = os.environ.get("EVERGROW_DATA")
    path = Path(folder or "") / name
    return path if folder and path.is_file() else None


def image_features() -> Split:
    """CIFAR-100 as 256 features of EfficientNet-Lite0, or a mixture of the same shape."""
    path = data_file("cifar100_efflite0_pca256.npz")
    if path is None:
        return mixture(50000, 256, 100, n_test=10000)
    with np.load(path) as data:
        X, X_test = (data[f"X_{part}"].astype(np.float32) for part in ("train", "test"))
        return Split("CIFAR-100 features", X, data["y_train"], X_test, data["y_test"])


def digits() -> Split:
    """scikit-learn's digits without the pixels that hardly ever vary."""
    X, y = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 0.5]
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    return Split("digits", X_train, y_train, X_test, y_test)
