"""The paper's protocol: many examples of all classes but one, which then comes a few at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.research.datasets import Dataset, digits, mixture
from evergrow.research.experiments.experiment import Source
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Table

__all__ = [
    "BLOCKS",
    "PENALTY_NOTE",
    "SOURCES",
    "STAND_INS",
    "Block",
    "Trial",
    "accuracies",
    "block_of",
    "is_own",
    "learning",
    "name_of",
    "new_class",
    "trial_of",
    "while_rare",
]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Block:
    """One of the paper's data sets: how much of it is used, and how much rare classes count."""

    n_classes: int
    per_class: int
    n_test: int
    recoding: float


# As in the paper: 1000 digits of each class; the robots' objects have 28 and 51 classes.
BLOCKS: Mapping[str, Block] = {
    "mnist": Block(10, 1000, 200, 0.7),
    "cifar100": Block(28, 500, 100, 0.6),
    "caltech101": Block(51, 60, 40, 0.7),
}

STAND_INS = (
    "iCubWorld28 and RGB-D are not at hand. Where the paper has them, 28 classes of CIFAR-100 and "
    "51 of Caltech-101, as features of a network trained on ImageNet, stand for robots' objects; "
    "the paper's numbers for robots are not put beside them.",
    "Without data files, and in quick runs, scikit-learn's small digits stand for MNIST and "
    "generated mixtures for the others. A class has fewer examples where the data have fewer.",
)


PENALTY_NOTE = (
    "The penalty is chosen on held-out examples without recoding, once for all ways of counting "
    "rare classes; the paper chooses the best for each."
)

_OWN = ", own data"


def _as_pixels(data: Dataset) -> Dataset:
    """Grey values from -1 to 1; what are no whole numbers from 0 on stays as it is."""
    X = data.X_train
    if X.min() < 0 or not np.array_equal(X, np.rint(X)):
        return data
    half = np.float32(max(X.max(), 1) / 2)
    train, test = (X.astype(np.float32) / half - 1 for X in (data.X_train, data.X_test))
    return replace(data, X_train=train, X_test=test)


def _objects(n_classes: int, n_features: int, n_train: int) -> Dataset:
    data = mixture(n_classes, n_features, n_train, 30, distance=0.6)
    return replace(data, name=f"mixture of {n_classes}")


SOURCES: Mapping[str, Source] = {
    "mnist": Source("mnist.npz", lambda: _as_pixels(digits()), _as_pixels),
    "cifar100": Source("cifar100_efflite0_pca256.npz", lambda: _objects(28, 32, 100)),
    "caltech101": Source("caltech101_efflite0_224.npz", lambda: _objects(51, 64, 50)),
}


def block_of(lab: Lab, name: str) -> Block:
    """How much of a data set to use; of the user's own, all classes of it."""
    return BLOCKS[name] if lab.data is None else replace(BLOCKS["cifar100"], n_classes=1000)


def name_of(lab: Lab, data: Dataset) -> str:
    """How rows name their data: the user's own are no data set of the paper, whatever the file."""
    return data.name if lab.data is None else f"{data.name}{_OWN}"


def is_own(name: str) -> bool:
    """Whether rows of this name are of the user's own data."""
    return name.endswith(_OWN)


def while_rare(table: Table, naive: Mapping[str, Any], recoded: Mapping[str, Any]) -> Table:
    """Rows in which the new class has fewer examples than the others.

    With as many as they have, recoding scales all classes alike and answers cannot change; that
    is seen at the largest number, where all seeds then have the same accuracies with both.
    """
    most = max(table.values("n_new"))
    last = table.where(n_new=most)
    same = all(
        last.where(**naive).column(column).tolist() == last.where(**recoded).column(column).tolist()
        for column in ("total", "new_class")
    )
    return Table(row for row in table if row["n_new"] < most) if same else table


@dataclass(frozen=True, eq=False)
class Trial:
    """Examples of the known classes, of the new one, and to test on."""

    known: tuple[Array, Array]
    new: tuple[Array, Array]
    test: tuple[Array, Array]
    label: Any
    """The new class."""

    def counts(self, wanted: Sequence[int]) -> list[int]:
        """Those numbers of new examples that there are; see :func:`while_rare` for the last."""
        X, _ = self.new
        return [n for n in wanted if n <= len(X)]

    def with_new(self, n: int) -> tuple[Array, Array]:
        """All known examples and the first new ones."""
        (X, y), (X_new, y_new) = self.known, self.new
        return np.concatenate([X, X_new[:n]]), np.concatenate([y, y_new[:n]])


def new_class(data: Dataset, block: Block, place: int) -> Any:
    """The class at this place among those used."""
    classes = _largest(data, block.n_classes)
    return classes[place % len(classes)]


def _largest(data: Dataset, n_classes: int) -> Array:
    """The classes with the most examples, sorted."""
    classes, counts = np.unique(data.y_train, return_counts=True)
    return np.sort(classes[np.argsort(-counts, kind="stable")[:n_classes]])


def trial_of(data: Dataset, block: Block, label: Any, seed: int) -> Trial:
    """Draw the examples of one trial."""
    rng = np.random.default_rng(seed)

    def some(y: Array, one: Any, n: int) -> Array:
        return rng.permutation(np.flatnonzero(y == one))[:n]

    classes = _largest(data, block.n_classes)
    if len(classes) < 2:
        raise ValueError(f"{data.name!r} has one class; a new one needs others to be beside")
    others = classes[classes != label]
    known = np.concatenate([some(data.y_train, one, block.per_class) for one in others])
    known, new = rng.permutation(known), some(data.y_train, label, block.per_class)
    test = np.concatenate([some(data.y_test, one, block.n_test) for one in classes])
    return Trial(
        (data.X_train[known], data.y_train[known]),
        (data.X_train[new], data.y_train[new]),
        (data.X_test[test], data.y_test[test]),
        label,
    )


def learning(trial: Trial, counts: Sequence[int], seed: int) -> Iterator[tuple[int, Any]]:
    """One model that learns the new class, at each of these numbers of its examples.

    Recoding only scales the weights of classes, so one model answers for every value of it: set
    ``recoding`` before asking. The penalty is chosen on held-out examples, as in the paper.
    """
    from evergrow import RLSClassifier

    model = RLSClassifier(recoding=0.0, random_state=seed).fit(*trial.known)
    X, y = trial.new
    taught = 0
    for count in trial.counts(counts):
        model.partial_fit(X[taught:count], y[taught:count])
        taught = count
        yield count, model


def accuracies(model: Any, trial: Trial) -> dict[str, float]:
    """Share of right answers over all classes, of the new one, and of the others."""
    X, y = trial.test
    right = model.predict(X) == y
    new = y == trial.label
    return {
        "total": float(right.mean()),
        "new_class": float(right[new].mean()),
        "others": float(right[~new].mean()),
    }
