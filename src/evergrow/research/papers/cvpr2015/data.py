"""The data sets of this paper's experiments, and how many samples a run uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from evergrow.research import experiments as ex
from evergrow.research.datasets import Dataset, mixture
from evergrow.research.papers.cvpr2015.levels import TwoLevels


def _built_in() -> Dataset:
    return mixture(24, 24, 50, 30, distance=0.6, n_groups=6)


def _roots(data: Dataset) -> Dataset:
    # The variance of counts grows with the counts; that of their square roots does not. Forests
    # then standardise, which is the diagonal of the paper's whitening.
    X_train, X_test = (np.sqrt(np.maximum(X, 0)) for X in (data.X_train, data.X_test))
    return replace(data, X_train=X_train, X_test=X_test)


SOURCES = {
    "features": ex.Source("cifar100_efflite0_pca256.npz", _built_in),
    "words": ex.Source("cifar100_words1000.npz", _built_in, _roots),
    "birds": ex.Source("cub200_efflite0_224.npz", _built_in),
}

# Data sets that are features of a network.
OF_A_NETWORK = ("features", "birds")

# Training and test samples of each class, None for all: two cores need minutes for these.
_SIZES: dict[str, tuple[int | None, int | None]] = {
    "features": (200, 50),
    "words": (150, 50),
    "birds": (None, None),
}

_DATA_NOTE = (
    "The paper has 387 classes of ILSVRC 2010 under 143 coarse ones, as 1000 visual words; here "
    '"features" are the 100 classes of CIFAR-100 under 20 as 256 features of a network, "words" '
    'the same as 1000 visual words (square roots of counts), and "birds" the 200 kinds of CUB '
    "under 70 groups as 1280 features. Percentages cannot be compared, relations can."
)
_SIZE_NOTE = (
    "Forests have 20 trees in place of 50 and 100 subsets per node in place of 1000, and compare "
    "them on a part of the samples of a large node: 1024, or three per class where all labels are "
    "fine (table 1, fig. 2), 256 at least. Of CIFAR-100 "
    "200 samples of each class train (features) or 150 (words) and 50 test. Parameters are not "
    "optimised anew. Accuracies are means over classes, and deviations those of the seeds."
)
_CHANCE_NOTE = (
    "A difference counts when it lies outside its own 95 % interval over the seeds, or is above 2 "
    "points where there are fewer than three. Claims that rest on many comparisons are not "
    "corrected for their number: a single one may be chance."
)
NOTES = (_DATA_NOTE, _SIZE_NOTE, _CHANCE_NOTE)


def sources(*names: str) -> dict[str, ex.Source]:
    """Some of the data sets; the user's own data replace the first."""
    return {name: SOURCES[name] for name in names}


def settings(context: ex.ExperimentContext, **choices: Iterable[Any]) -> list[ex.Run]:
    """One run per seed, data set and combination of choices.

    Built-in data are the same under every name, so one name is enough.
    """
    names = [name for name in context.names if not context.is_built_in(name)] or context.names[:1]
    trees = context.scaled(20, 10)
    return [
        {**run, "trees": trees, **_size(context, run["data"])}
        for run in context.grid(seed=context.seeds(quick=3), data=names, **choices)
    ]


def _size(context: ex.ExperimentContext, name: str) -> dict[str, int | None]:
    # All samples of the user's own data and of built-in data are used.
    n_train, n_test = _SIZES[name] if _is_ours(context, name) else (None, None)
    return {"n_train": n_train, "n_test": n_test}


def _is_ours(context: ex.ExperimentContext, name: str) -> bool:
    return context.data is None and not context.is_built_in(name)


def shown_name(context: ex.ExperimentContext, name: str) -> str:
    """The name of a data set in tables: our short name, or its own if it is the user's."""
    return name if _is_ours(context, name) else context.dataset(name).name


def samples(context: ex.ExperimentContext, run: ex.Run) -> TwoLevels:
    """The samples that a run uses."""
    data = context.dataset(run["data"])
    if run["n_train"] is not None:
        data = data.per_class(run["n_train"], run["n_test"])
    return TwoLevels.of(data)


# What the experiments of this paper have in common.
make_experiment = partial(ex.Experiment, timed=("seconds",))
