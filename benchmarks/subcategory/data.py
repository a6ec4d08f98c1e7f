"""Samples with a coarse and a fine class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.data import Array, data_file

__all__ = ["DATA_SETS", "TwoLevels", "data_sets", "generated"]


# By identity, so that what was computed from a data set can be remembered.
@dataclass(frozen=True, eq=False)
class TwoLevels:
    """Training and test samples with fine classes, and the coarse class of each fine one.

    Coarse classes are numbered after the fine ones, so that a number names one class only.
    """

    key: str
    name: str
    X: Array
    fine: Array
    X_test: Array
    fine_test: Array
    parents: Array

    @property
    def is_real(self) -> bool:
        """Whether bars hold: they are promises on real features."""
        return self.key in DATA_SETS and not self.name.startswith("generated")

    @property
    def coarse(self) -> Array:
        """Coarse class of each training sample."""
        return self.parents[self.fine]

    @property
    def coarse_test(self) -> Array:
        """Coarse class of each test sample."""
        return self.parents[self.fine_test]


def generated(
    key: str, n_each: int, n_features: int, n_coarse: int, n_children: int, n_test_each: int = 20
) -> TwoLevels:
    """Gaussian fine classes around the centres of coarse ones, the same for every run."""
    rng = np.random.default_rng(0)
    places = np.repeat(np.arange(n_coarse), n_children)
    centres = 0.6 * rng.standard_normal((n_coarse, n_features), dtype=np.float32)[places]
    centres += 0.45 * rng.standard_normal(centres.shape, dtype=np.float32)
    parts = []
    for n in (n_each, n_test_each):
        fine = np.repeat(np.arange(len(places)), n)
        X = centres[fine] + rng.standard_normal((len(fine), n_features), dtype=np.float32)
        parts += [X, fine]
    name = f"generated, {n_coarse} to {len(places)} classes"
    return TwoLevels(key, name, parts[0], parts[1], parts[2], parts[3], _after_fine(places))


def _after_fine(places: Array) -> Array:
    return places.astype(np.int64) + len(places)


def _cifar(path: Path | None, key: str, name: str, n_features: int) -> TwoLevels:
    if path is None:
        return generated(key, 500, n_features, 20, 5, 100)
    with np.load(path) as data:
        X, X_test = (data[f"X_{part}"].astype(np.float32) for part in ("train", "test"))
        fine, fine_test = (data[f"y_{part}"].astype(np.int64) for part in ("train", "test"))
        return TwoLevels(key, name, X, fine, X_test, fine_test, _after_fine(data["fine_to_coarse"]))


@cache
def _embeddings() -> TwoLevels:
    path = data_file("cifar100_efflite0_pca256.npz")
    return _cifar(path, "cifar", "CIFAR-100 features", 256)


@cache
def _words() -> TwoLevels:
    data = _cifar(data_file("cifar100_words1000.npz"), "words", "CIFAR-100 words", 1000)
    # Counts vary as much as they are large; their square roots do not. Forests then standardise,
    # which is the diagonal of the paper's whitening.
    X, X_test = (np.sqrt(np.maximum(part, 0)) for part in (data.X, data.X_test))
    return TwoLevels(
        data.key, data.name, X, data.fine, X_test, data.fine_test, parents=data.parents
    )


@cache
def _birds() -> TwoLevels:
    path = data_file("cub200_efflite0_224.npz")
    if path is None:
        return generated("cub", 30, 1280, 70, 3, 29)
    with np.load(path) as data:
        X, fine = data["X"].astype(np.float32), data["y"].astype(np.int64)
        train, parents = data["split"] == "train", _after_fine(data["fine_to_coarse"])
    return TwoLevels(
        "cub", "CUB-200 features", X[train], fine[train], X[~train], fine[~train], parents
    )


DATA_SETS: dict[str, Callable[[], TwoLevels]] = {
    "cifar": _embeddings,
    "cub": _birds,
    "words": _words,
}


def data_sets(names: tuple[str, ...] = (), *, quick: bool = False) -> list[TwoLevels]:
    """The data sets of these names, all by default; a small generated one if quick."""
    if quick:
        return [generated("small", 60, 16, 5, 4)]
    return [DATA_SETS[name]() for name in names or DATA_SETS]
