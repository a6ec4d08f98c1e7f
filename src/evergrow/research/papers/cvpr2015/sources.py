"""The data sets of this paper's experiments, and how much of each a run takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from evergrow.research.datasets import Dataset, mixture
from evergrow.research.experiments.experiment import Source
from evergrow.research.experiments.lab import Lab
from evergrow.research.papers.cvpr2015.levels import TwoLevels

__all__ = [
    "CHANCE_NOTE",
    "DATA_NOTE",
    "OF_A_NETWORK",
    "SIZE_NOTE",
    "SOURCES",
    "called",
    "samples",
    "settings",
    "sources",
]


def _built_in() -> Dataset:
    return mixture(24, 24, 50, 30, distance=0.6, n_groups=6)


def _roots(data: Dataset) -> Dataset:
    # Counts vary as much as they are large; their square roots do not. Forests then standardise,
    # which is the diagonal of the paper's whitening.
    X_train, X_test = (np.sqrt(np.maximum(X, 0)) for X in (data.X_train, data.X_test))
    return replace(data, X_train=X_train, X_test=X_test)


SOURCES = {
    "features": Source("cifar100_efflite0_pca256.npz", _built_in),
    "words": Source("cifar100_words1000.npz", _built_in, _roots),
    "birds": Source("cub200_efflite0_224.npz", _built_in),
}

# Those of them that are features of a network.
OF_A_NETWORK = ("features", "birds")

# Samples of each class for training and for testing, None for all: what two cores do in minutes.
_SIZES: dict[str, tuple[int | None, int | None]] = {
    "features": (200, 50),
    "words": (150, 50),
    "birds": (None, None),
}

DATA_NOTE = (
    "The paper has 387 classes of ILSVRC 2010 under 143 coarse ones, as 1000 visual words; here "
    '"features" are the 100 classes of CIFAR-100 under 20 as 256 features of a network, "words" '
    'the same as 1000 visual words (square roots of counts), and "birds" the 200 kinds of CUB '
    "under 70 groups as 1280 features. Percentages cannot be compared, relations can."
)
SIZE_NOTE = (
    "Forests have 20 trees in place of 50 and 100 subsets per node in place of 1000, and compare "
    "them on a part of the samples of a large node: 1024, or three per class where all labels are "
    "fine (table 1, fig. 2), 256 at least. Of CIFAR-100 "
    "200 samples of each class train (features) or 150 (words) and 50 test. Parameters are not "
    "optimised anew. Accuracies are means over classes, and deviations those of the seeds."
)
CHANCE_NOTE = (
    "A difference counts when it lies outside its own 95 % interval over the seeds, or is above 2 "
    "points where there are fewer than three. Claims that rest on many comparisons are not "
    "corrected for their number: a single one may be chance."
)


def sources(*names: str) -> dict[str, Source]:
    """Some of the data sets; the first stands for the user's own."""
    return {name: SOURCES[name] for name in names}


def settings(lab: Lab, **choices: Iterable[Any]) -> list[dict[str, Any]]:
    """One run per seed, data set and combination of choices.

    Built-in data are the same under every name: one name will do.
    """
    names = [name for name in lab.names if not lab.is_built_in(name)] or lab.names[:1]
    trees = lab.scaled(20, 10)
    return [
        {"data": name, "seed": seed, "trees": trees, **_size(lab, name), **chosen}
        for seed in lab.seeds(quick=3)
        for name in names
        for chosen in _combinations(choices)
    ]


def _combinations(choices: dict[str, Iterable[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def _size(lab: Lab, name: str) -> dict[str, int | None]:
    # The user's own data are taken whole, and so are built-in ones.
    n_train, n_test = _SIZES[name] if _is_ours(lab, name) else (None, None)
    return {"n_train": n_train, "n_test": n_test}


def _is_ours(lab: Lab, name: str) -> bool:
    return lab.data is None and not lab.is_built_in(name)


def called(lab: Lab, name: str) -> str:
    """What tables call a data set: ours by its short name, others by their own."""
    return name if _is_ours(lab, name) else lab.dataset(name).name


def samples(lab: Lab, run: Any) -> TwoLevels:
    """The samples of a run's data set that it takes."""
    data = lab.dataset(run["data"])
    if run["n_train"] is not None:
        data = data.per_class(run["n_train"], run["n_test"])
    return TwoLevels.of(data)
