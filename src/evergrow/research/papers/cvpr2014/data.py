"""The data sets of these experiments: strong features, weak ones as the paper's, and a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evergrow.research.datasets import Dataset, mixture
from evergrow.research.experiments.experiment import Source
from evergrow.research.experiments.lab import Lab

__all__ = ["DATA_NAMES", "NOTES", "SOURCES", "data_names", "initials", "last_class"]


def _matrix(data: Dataset) -> Dataset:
    if data.X_train.ndim != 2:
        raise ValueError(
            f"{data.name!r} is no table of features: these experiments take an .npz file with one "
            "row of numbers per sample"
        )
    return data


def _square_roots(data: Dataset) -> Dataset:
    """Counts of visual words, whose noise grows with them."""
    found = _matrix(data)
    return replace(found, X_train=np.sqrt(found.X_train), X_test=np.sqrt(found.X_test))


def _mixture() -> Dataset:
    return mixture(100, 48, n_train=40, n_test=20, distance=0.45)


SOURCES = {
    "features": Source("cifar100_efflite0_pca256.npz", _mixture, _matrix),
    "words": Source("cifar100_words1000.npz", _mixture, _square_roots),
}

DATA_NAMES = {"features": "features", "words": "visual words"}

NOTES = (
    "CIFAR-100 in place of ILSVRC 2010, which is not freely at hand: 100 classes of 500 training "
    "and 100 test images. `features` are 256 numbers per image from a network trained on ImageNet, "
    "far stronger than the paper's; `words` are counts over 1000 visual words, the paper's kind, "
    "of which we take the square root. Without these files both are a mixture of Gaussians.",
    "Every seed has its own random order of the classes; the paper fixed one.",
)


def data_names(lab: Lab, *names: str) -> tuple[str, ...]:
    """Those of the named data sets that are no stand-ins; the first if all are."""
    known = [name for name in names if name in lab.names]
    real = tuple(name for name in known if not lab.is_built_in(name))
    return real or (lab.names[0],)


def last_class(lab: Lab, name: str, wanted: int) -> int:
    """Number of classes to end with: as many as wanted, or all that there are."""
    return min(wanted, len(lab.dataset(name).classes))


def initials(
    lab: Lab, name: str, wanted: Sequence[int], end: int, *, to_come: int = 1
) -> list[int]:
    """Those numbers of initial classes that leave at least so many to come."""
    found = [n for n in wanted if n + to_come <= end]
    if not found:
        raise ValueError(
            f"{lab.dataset(name).name!r} has {end} classes; this experiment begins with "
            f"{min(wanted)} and needs at least {min(wanted) + to_come}"
        )
    return found
