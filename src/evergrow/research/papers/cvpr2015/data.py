"""The data sets of this paper's experiments, and how many samples a run uses."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import lru_cache, partial
from math import isqrt
from typing import Any

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.research import experiments as ex
from evergrow.research.datasets import Dataset, digits, mixture
from evergrow.research.papers.cvpr2015.levels import TwoLevels

# Patches of 8 x 8 pixels, one every 2 pixels: 121 of an image of 28 x 28.
_SIDE, _STEP = 8, 2
_COMPONENTS, _GAUSSIANS = 24, 16
_TRAINING_PATCHES = 50_000
_EPOCHS = 30


def _built_in() -> Dataset:
    return mixture(24, 24, 50, 30, distance=0.6, n_groups=6)


def _roots(data: Dataset) -> Dataset:
    # The variance of counts grows with the counts; that of their square roots does not. Forests
    # then standardise, which is the diagonal of the paper's whitening.
    X_train, X_test = (np.sqrt(np.maximum(X, 0)) for X in (data.X_train, data.X_test))
    return replace(data, X_train=X_train, X_test=X_test)


def _few_digits() -> Dataset:
    return digits().per_class(40, 20)


def _alphabets(data: Dataset) -> Dataset:
    # Names are "alphabet/character".
    names = data.class_names or {}
    parents = {label: name.partition("/")[0] for label, name in names.items()}
    return replace(data, parents=parents or data.parents)


SOURCES = {
    "features": ex.Source("cifar100_efflite0_pca256.npz", _built_in),
    "words": ex.Source("cifar100_words1000.npz", _built_in, _roots),
    "birds": ex.Source("cub200_efflite0_224.npz", _built_in),
    # Images, of which runs compute Fisher vectors.
    "characters": ex.Source("omniglot_small.npz", _few_digits, _alphabets),
}

# Data sets that are features of a network.
OF_A_NETWORK = ("features", "birds")
# Data sets that are images, seen as Fisher vectors.
OF_IMAGES = ("characters",)

# Key of runs of further seeds.
FURTHER = "further"

# Training and test samples of each class, None for all: two cores need minutes for these.
_SIZES: dict[str, tuple[int | None, int | None]] = {
    "features": (200, 50),
    "words": (150, 50),
    "birds": (None, None),
    "characters": (None, None),
}

_DATA_NOTES = {
    "features": (
        '"features" are 256 features of a network for the 100 classes of CIFAR-100 under 20 coarse '
        "ones."
    ),
    "words": '"words" are square roots of counts of 1000 visual words for the images of CIFAR-100.',
    "birds": '"birds" are 1280 features of a network for the 200 kinds of CUB under 70 groups.',
}
_SIZES_OF = {"features": "200 samples (features)", "words": "150 (words)"}
_SCORED = {
    "methods": "1024 of its samples",
    "RNCMF": "three of its samples per class, but at least 256",
    "both": "1024 of its samples, and RNCMF on three per class, but at least 256",
}
_CHANCE_NOTE = (
    "If a comparison was undecided after five seeds, its methods were run with more seeds. Claims "
    "that rest on many comparisons are not corrected for multiple testing, so a single difference "
    "may be chance."
)


def notes(*names: str, scored: str = "methods", more_seeds: bool = True) -> tuple[str, ...]:
    """The differences from the paper that experiments on these data sets share.

    ``scored`` says whose number of samples a node compares subsets on: that of RNCMF, that of all
    other "methods", or "both".
    """
    told = " ".join(note for name, note in _DATA_NOTES.items() if name in names)
    sizes = " or ".join(text for name, text in _SIZES_OF.items() if name in names)
    return (
        "The paper has 387 fine classes of ILSVRC 2010 under 143 coarse ones, described by 1000 "
        f"visual words. Here {told} So the percentages cannot be compared with the paper, but the "
        "order of the methods can.",
        "Forests have 20 trees instead of 50, and try 100 subsets of classes per node instead of "
        f"1000. A large node compares subsets on {_SCORED[scored]}. Of each class of CIFAR-100, "
        f"{sizes} are used to train and 50 to test. Parameters were not tuned again. Accuracies "
        "are means over classes.",
        *([_CHANCE_NOTE] if more_seeds else []),
    )


def sources(*names: str) -> dict[str, ex.Source]:
    """Some of the data sets; the user's own data replace the first."""
    return {name: SOURCES[name] for name in names}


def settings(
    context: ex.ExperimentContext, seeds: range | None = None, /, **choices: Iterable[Any]
) -> list[ex.Run]:
    """One run per seed, data set and combination of choices.

    Built-in features are the same under every name, so one name is enough; images are others.
    """
    first, *others = context.names
    names = [name for name in context.names if not context.is_built_in(name)] or [
        first,
        *(name for name in others if name in OF_IMAGES),
    ]
    trees = context.scaled(20, 10)
    return [
        {**run, "trees": trees, **_size(context, run["data"])}
        for run in context.grid(seed=seeds or context.seeds(quick=3), data=names, **choices)
    ]


def further_seeds(
    context: ex.ExperimentContext, n_seeds: int, names: Collection[str], **choices: Iterable[Any]
) -> list[ex.Run]:
    """Runs of further seeds on some data sets, for contrasts that five leave open.

    They have the key ``FURTHER``, and may measure fewer methods. Only full runs on our files with
    the default number of seeds have them.
    """
    if context.quick or context.data is not None or context.n_seeds is not None:
        return []
    seeds = range(len(context.seeds()), n_seeds)
    runs = settings(context, seeds, **choices, **{FURTHER: [True]})
    return [run for run in runs if run["data"] in names and not context.is_built_in(run["data"])]


def usual_seeds(table: ex.Table) -> ex.Table:
    """The rows of seeds that measured everything."""
    return ex.Table(row for row in table if not row.get(FURTHER))


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
    if run["data"] in OF_IMAGES and context.data is None:
        data = fisher_vectors(data)
    if run["n_train"] is not None:
        data = data.per_class(run["n_train"], run["n_test"])
    return TwoLevels.of(data)


@lru_cache(maxsize=1)
def fisher_vectors(data: Dataset) -> Dataset:
    """The same images as Fisher vectors; the mixture is learnt on training images without labels.

    The hash stays that of the images.
    """
    from sklearn.exceptions import ConvergenceWarning

    from evergrow.vision import FisherVectors

    largest = float(data.X_train.max()) or 1.0
    train, test = (_patches(X / largest) for X in (data.X_train, data.X_test))
    # Small images, such as digits of 8 x 8 pixels, have small vectors.
    is_small = train[0].shape[1] < _SIDE * _SIDE
    vectors = FisherVectors(
        _GAUSSIANS // (4 if is_small else 1),
        n_pca=_COMPONENTS // (4 if is_small else 1),
        n_training_descriptors=_TRAINING_PATCHES,
        max_iter=_EPOCHS,
        random_state=0,
    )
    with warnings.catch_warnings():
        # 30 epochs are enough for a vocabulary.
        warnings.simplefilter("ignore", ConvergenceWarning)
        vectors.fit(train)
    return replace(data, X_train=vectors.transform(train), X_test=vectors.transform(test))


def _patches(X: Array) -> list[Array]:
    """The patches of each square image as rows of pixels, without those of a single value."""
    width = isqrt(X.shape[1])
    images = X.reshape(len(X), width, width)
    side, step = (_SIDE, _STEP) if width > 2 * _SIDE else (width // 2, 1)
    windows = np.lib.stride_tricks.sliding_window_view(images, (side, side), axis=(1, 2))
    rows = windows[:, ::step, ::step].reshape(len(X), -1, side * side)
    varied = rows.max(axis=2) > rows.min(axis=2)
    return [mine[shown] for mine, shown in zip(rows, varied, strict=True)]


# What the experiments of this paper have in common.
make_experiment = partial(ex.Experiment, timed=("seconds",))
