"""The paper's protocol: many examples of all classes but one, which is then added step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import InvalidInputError
from evergrow.research import experiments as ex
from evergrow.research.datasets import Dataset, digits, mixture


@dataclass(frozen=True)
class Setup:
    """How much of a data set is used, and the recoding, which is the weight of rare classes."""

    n_classes: int
    per_class: int
    n_test: int
    recoding: float


# As in the paper: 1000 digits of each class; the robots' objects have 28 and 51 classes.
SETUPS: Mapping[str, Setup] = {
    "mnist": Setup(10, 1000, 200, 0.7),
    "cifar100": Setup(28, 500, 100, 0.6),
    "caltech101": Setup(51, 60, 40, 0.7),
}

DATA_NOTES = (
    "We do not have iCubWorld28 and RGB-D, the paper's data of robots. In their place we use 28 "
    "classes of CIFAR-100 and 51 of Caltech-101, as features of a network trained on ImageNet.",
    "Without data files, and in quick runs, scikit-learn's digits replace MNIST, and generated "
    "mixtures replace the others.",
)


PENALTY_NOTE = (
    "The penalty is chosen once, on held-out examples and without recoding; the paper chooses "
    "the best one for each method."
)

_OWN = ", own data"


def _as_pixels(data: Dataset) -> Dataset:
    """Scale grey values to -1 to 1; data that are not natural numbers are unchanged."""
    X = data.X_train
    if X.min() < 0 or not np.array_equal(X, np.rint(X)):
        return data
    half = np.float32(max(X.max(), 1) / 2)
    train, test = (X.astype(np.float32) / half - 1 for X in (data.X_train, data.X_test))
    return replace(data, X_train=train, X_test=test)


def _objects(n_classes: int, n_features: int, n_train: int) -> Dataset:
    data = mixture(n_classes, n_features, n_train, 30, distance=0.6)
    return replace(data, name=f"mixture of {n_classes}")


SOURCES: Mapping[str, ex.Source] = {
    "mnist": ex.Source("mnist.npz", lambda: _as_pixels(digits()), _as_pixels),
    "cifar100": ex.Source("cifar100_efflite0_pca256.npz", lambda: _objects(28, 32, 100)),
    "caltech101": ex.Source("caltech101_efflite0_224.npz", lambda: _objects(51, 64, 50)),
}


def setup_of(context: ex.ExperimentContext, name: str) -> Setup:
    """The setup of a data set; of the user's own data all classes are used."""
    return SETUPS[name] if context.data is None else replace(SETUPS["cifar100"], n_classes=1000)


def shown_name(context: ex.ExperimentContext, data: Dataset) -> str:
    """The name of the data in rows; it marks the user's own data, whatever their file name."""
    return data.name if context.data is None else f"{data.name}{_OWN}"


def is_own_data(name: str) -> bool:
    """Whether a name in rows marks the user's own data."""
    return name.endswith(_OWN)


def rows_while_rare(
    table: ex.Table, naive: Mapping[str, Any], recoded: Mapping[str, Any]
) -> ex.Table:
    """Rows in which the new class has fewer examples than the others.

    With as many examples as the others, recoding scales all classes equally and cannot change a
    prediction. Then, at the largest number of examples, both methods have the same accuracies.
    """
    most = max(table.values("n_new"))
    last = table.where(n_new=most)
    same = all(
        last.where(**naive).column(column).tolist() == last.where(**recoded).column(column).tolist()
        for column in ("total", "new_class")
    )
    return ex.Table(row for row in table if row["n_new"] < most) if same else table


def without_idle_reasons(findings: Sequence[ex.Finding]) -> list[ex.Finding]:
    """The same findings, with reasons only for those that differ."""
    return [f if f.agrees is False else replace(f, reason="") for f in findings]


@dataclass(frozen=True, eq=False)
class NewClassTask:
    """Examples of the known classes and of the new class, and test examples."""

    known: tuple[Array, Array]
    new: tuple[Array, Array]
    test: tuple[Array, Array]
    label: Any
    """The new class."""

    def counts(self, wanted: Sequence[int]) -> list[int]:
        """The wanted numbers of new examples that are available."""
        X, _ = self.new
        return [n for n in wanted if n <= len(X)]

    def with_new(self, n: int) -> tuple[Array, Array]:
        """All known examples and the first ``n`` new ones."""
        (X, y), (X_new, y_new) = self.known, self.new
        return np.concatenate([X, X_new[:n]]), np.concatenate([y, y_new[:n]])


def new_class(data: Dataset, setup: Setup, place: int) -> Any:
    """The class at this position among the classes used."""
    classes = _largest(data, setup.n_classes)
    return classes[place % len(classes)]


def _largest(data: Dataset, n_classes: int) -> Array:
    """The classes with the most examples, sorted."""
    classes, counts = np.unique(data.y_train, return_counts=True)
    return np.sort(classes[np.argsort(-counts, kind="stable")[:n_classes]])


def task_of(context: ex.ExperimentContext, run: ex.Run, position: int) -> NewClassTask:
    """The task of a run whose new class is at this position."""
    return task_in(context, context.dataset(run["data"]), run, position)


def task_in(
    context: ex.ExperimentContext, data: Dataset, run: ex.Run, position: int
) -> NewClassTask:
    """The same in other features of the data."""
    setup = setup_of(context, run["data"])
    return draw_task(data, setup, new_class(data, setup, position), run["seed"])


def draw_task(data: Dataset, setup: Setup, label: Any, seed: int) -> NewClassTask:
    """Draw the examples of a task at random."""
    rng = np.random.default_rng(seed)

    def some(y: Array, one: Any, n: int) -> Array:
        return rng.permutation(np.flatnonzero(y == one))[:n]

    classes = _largest(data, setup.n_classes)
    if len(classes) < 2:
        raise InvalidInputError(
            f"{data.name!r} has one class; a new one needs others to compare with"
        )
    others = classes[classes != label]
    known = np.concatenate([some(data.y_train, one, setup.per_class) for one in others])
    known, new = rng.permutation(known), some(data.y_train, label, setup.per_class)
    test = np.concatenate([some(data.y_test, one, setup.n_test) for one in classes])
    return NewClassTask(
        (data.X_train[known], data.y_train[known]),
        (data.X_train[new], data.y_train[new]),
        (data.X_test[test], data.y_test[test]),
        label,
    )


def learn_new_class(
    task: NewClassTask,
    counts: Sequence[int],
    seed: int,
    recoding: Any = 0.0,
    *,
    select_once: bool = False,
) -> Iterator[tuple[int, Any]]:
    """Yield one model at each of these numbers of examples of the new class.

    The penalty is chosen for this recoding on a holdout, as in the paper; with ``select_once`` only
    before the new class, which is much faster. Recoding only scales the weights of classes: to see
    the effect of other values with the same penalty, set ``recoding`` before predicting.
    """
    from evergrow import RLSClassifier

    model = RLSClassifier(
        recoding=recoding, scoring="regression", selection="paper", random_state=seed
    )
    yield from teach_new_class(model, task, counts, select_once=select_once)


def teach_new_class(
    model: Any, task: NewClassTask, counts: Sequence[int], *, select_once: bool = False
) -> Iterator[tuple[int, Any]]:
    """Teach a model the known classes and then the new one, and yield it at each number."""
    recoding = model.recoding
    model.fit(*task.known)
    if select_once:
        model.set_params(regularization=model.regularization_)
    X, y = task.new
    taught = 0
    for count in task.counts(counts):
        # The caller may have changed the recoding to predict.
        model.set_params(recoding=recoding).partial_fit(X[taught:count], y[taught:count])
        taught = count
        yield count, model


def accuracies(model: Any, task: NewClassTask) -> dict[str, float]:
    """Accuracy over all classes, on the new class and on the others."""
    X, y = task.test
    right = model.predict(X) == y
    new = y == task.label
    return {
        "total": float(right.mean()),
        "new_class": float(right[new].mean()),
        "others": float(right[~new].mean()),
    }
