"""Camoriano et al.: robots that learn new objects, each in constant time, ICRA 2017.

Many examples of all classes but one are known, and the new class is added step by step. Regularised
least squares ignore a class that is so rare, unless its targets are recoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg

from evergrow import RLSClassifier, _core
from evergrow.estimators.linear import RFF, RebalancedRLSClassifier
from evergrow.foundation.threads import one_blas_thread
from evergrow_papers.claims import (
    Claim,
    Compare,
    Verdict,
    Words,
    deciding,
    each_seed,
    points,
    times,
)
from evergrow_papers.data import Array, Dataset, digits, mixture
from evergrow_papers.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Axes,
    Figure,
    Panel,
    Panels,
    Style,
    add_legend,
)
from evergrow_papers.frame import Context, Experiment, Run, Source, grid, time_call
from evergrow_papers.table import Row, Table, at_most, first, last

CITATION = (
    "Camoriano, Pasquale, Ciliberto, Natale, Rosasco, Metta: Incremental Robot Learning of New "
    "Objects with Fixed Update Time, ICRA 2017"
)
WORDS = Words(
    settings={
        "gamma": "common class {}",
        "n_before": "{} examples learnt before",
        "n_new": "new examples: {}",
        "paper's data": "the paper's data: {}",
        "recoding": "recoding {}",
    },
    values={
        "data": {
            "mnist": "MNIST",
            "cifar100_efflite0_pca256": "CIFAR-100",
            "caltech101_efflite0_224": "Caltech-101",
        }
    },
    quantities={
        "n_before": "examples learnt before",
        "n_new": "examples of the new class",
        "new_class": "accuracy on the new class",
        "others": "accuracy on the other classes",
        "seconds": "one more example, s",
        "total": "accuracy on all classes",
    },
    shares=("gamma", "new_class", "others", "rare", "same_answers", "total"),
)

NAIVE, REBALANCED, RECODED, AUTO, OURS = "naive", "rebalanced", "recoded", "auto", "ours"
EXACT = ("new_class", "others", "total")


# --- The protocol: many examples of all classes but one, which is then added step by step


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


def scale_pixels(data: Dataset) -> Dataset:
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


SOURCES = {
    "mnist": Source("mnist.npz", lambda: scale_pixels(digits()), scale_pixels),
    "cifar100": Source("cifar100_efflite0_pca256.npz", partial(_objects, 28, 32, 100)),
    "caltech101": Source("caltech101_efflite0_224.npz", partial(_objects, 51, 64, 50)),
}


def setup_of(context: Context, name: str) -> Setup:
    """The setup of a data set; of the user's own data all classes are used."""
    return SETUPS[name] if context.data is None else replace(SETUPS["cifar100"], n_classes=1000)


@dataclass(frozen=True, eq=False)
class Task:
    """Examples of the known classes and of the new class, test examples, and the new class."""

    known: tuple[Array, Array]
    new: tuple[Array, Array]
    test: tuple[Array, Array]
    label: Any

    def counts(self, wanted: Sequence[int]) -> list[int]:
        """The wanted numbers of new examples that are available."""
        return [n for n in wanted if n <= len(self.new[1])]

    def with_new(self, n: int) -> tuple[Array, Array]:
        """All known examples and the first ``n`` new ones."""
        (X, y), (X_new, y_new) = self.known, self.new
        return np.concatenate([X, X_new[:n]]), np.concatenate([y, y_new[:n]])

    def accuracies(self, model: Any) -> dict[str, float]:
        """Accuracy over all classes, on the new class and on the others."""
        X, y = self.test
        right, new = model.predict(X) == y, y == self.label
        means = (right.mean(), right[new].mean(), right[~new].mean())
        return dict(zip(("total", "new_class", "others"), map(float, means), strict=True))


def draw_task(data: Dataset, setup: Setup, place: int, seed: int) -> Task:
    """Draw the examples of a task at random; the new class is at a place among those used."""
    rng = np.random.default_rng(seed)

    def some(y: Array, one: Any, n: int) -> Array:
        return rng.permutation(np.flatnonzero(y == one))[:n]

    # The classes with the most examples.
    classes, counts = np.unique(data.y_train, return_counts=True)
    classes = np.sort(classes[np.argsort(-counts, kind="stable")[: setup.n_classes]])
    label = classes[place % len(classes)]
    others = classes[classes != label]
    known = np.concatenate([some(data.y_train, one, setup.per_class) for one in others])
    known, new = rng.permutation(known), some(data.y_train, label, setup.per_class)
    test = np.concatenate([some(data.y_test, one, setup.n_test) for one in classes])
    return Task(
        (data.X_train[known], data.y_train[known]),
        (data.X_train[new], data.y_train[new]),
        (data.X_test[test], data.y_test[test]),
        label,
    )


def least_squares(seed: int, recoding: Any = 0.0) -> RLSClassifier:
    """Least squares whose penalty is chosen for this recoding on a holdout, as in the paper.

    Recoding only scales the weights of classes: to see the effect of other values with the same
    penalty, set ``recoding`` before predicting.
    """
    return RLSClassifier(
        recoding=recoding, scoring="regression", selection="paper", random_state=seed
    )


def learn_new_class(
    model: Any, task: Task, counts: Sequence[int], *, select_once: bool = False
) -> Iterator[tuple[int, Any]]:
    """Teach a model the known classes and then the new one; yields it at each number of examples.

    With ``select_once`` the penalty is chosen only before the new class, which is much faster.
    """
    recoding = model.recoding
    model.fit(*task.known)
    if select_once:
        model.set_params(regularization=model.regularization_)
    X, y = task.new
    for before, count in pairwise((0, *task.counts(counts))):
        # The caller may have changed the recoding to predict.
        model.set_params(recoding=recoding).partial_fit(X[before:count], y[before:count])
        yield count, model


# --- Fig. 1: Bayes boundaries of a common and a rare class

GAMMAS = (0.5, 0.6, 0.7, 0.8, 0.9)
STANDARD, IDEAL = "Bayes", "Bayes, rebalanced"
# Exact boundaries, then least squares on samples; colour, line and label of each.
LOOKS = {
    STANDARD: (RED, "-", "Bayes, standard loss"),
    IDEAL: (BLUE, "-", "Bayes, rebalanced loss"),
    NAIVE: (ORANGE, "--", "least squares, naive"),
    RECODED: (GREEN, "--", "least squares, recoded"),
    REBALANCED: (BLACK, ":", "least squares, rebalanced"),
}
N_DIRECTIONS = 72
N_TEST = 5000
# Width of the random Fourier features: the deviation of the kernel that they approximate. The first
# one is judged; broader ones show what the learnt radius depends on.
WIDTH, *BROADER = (0.25, 0.35, 0.5)


@dataclass(frozen=True)
class Gaussian:
    """A class whose samples are spread equally in all directions."""

    mean: tuple[float, float]
    deviation: float

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw ``n`` samples."""
        return np.array(self.mean) + self.deviation * rng.standard_normal((n, 2))


# The caption of fig. 1: class 1, whose share is gamma, and class -1.
COMMON = Gaussian((-1.0, 0.0), 1.0)
RARE = Gaussian((1.0, 0.0), 0.3)


@dataclass(frozen=True)
class Circle:
    """A boundary with the rare class inside."""

    centre: tuple[float, float]
    radius: float

    def inside(self, X: Array) -> Array:
        """Whether each sample is inside."""
        return np.asarray(np.hypot(*(X - np.array(self.centre)).T) < self.radius)

    def at(self, radii: Array) -> Array:
        """Points at these distances from the centre, one per direction all around."""
        angles = 2 * np.pi * np.arange(len(radii)) / len(radii)
        around = np.column_stack([np.cos(angles), np.sin(angles)])
        return np.asarray(np.array(self.centre) + radii[:, None] * around)


def boundary(gamma: float, *, rebalanced: bool) -> Circle:
    """The boundary of the Bayes classifier, standard or rebalanced.

    The standard one is where both classes are equally likely, [Camoriano2017 Eq. 2 and 6], the
    rebalanced one where their densities are equal, [Camoriano2017 Eq. 7 and 8]. For two round
    Gaussians the log-ratio is a quadratic form with equal square terms, so that the boundary is a
    circle.
    """
    odds = 1.0 if rebalanced else (1 - gamma) / gamma
    precision, common = 1 / RARE.deviation**2, 1 / COMMON.deviation**2
    curvature = precision - common
    rare_mean, common_mean = np.array(RARE.mean), np.array(COMMON.mean)
    centre = (precision * rare_mean - common * common_mean) / curvature
    level = 2 * np.log(odds) + 4 * np.log(COMMON.deviation / RARE.deviation)
    offset = precision * rare_mean @ rare_mean - common * common_mean @ common_mean
    square = centre @ centre + (level - offset) / curvature
    return Circle((float(centre[0]), float(centre[1])), float(np.sqrt(max(square, 0.0))))


def draw_samples(gamma: float, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw samples of both classes, a share ``gamma`` of the common one; labels 1 and -1."""
    n_common = round(gamma * n)
    X = np.concatenate([COMMON.draw(rng, n_common), RARE.draw(rng, n - n_common)])
    return X, np.repeat([1, -1], [n_common, n - n_common])


def _fig1_runs(context: Context) -> list[Run]:
    full, fewer = context.scaled((20000, 5000), (4000, 1000))
    main = {"seed": context.seeds(), "gamma": GAMMAS, "n_samples": [full], "width": [WIDTH]}
    most = {**main, "gamma": [max(GAMMAS)]}
    return [
        *grid(**main),
        *grid(**{**most, "width": BROADER}),
        *grid(**{**most, "n_samples": [fewer]}),
    ]


def _fig1_measure(context: Context, run: Run) -> list[Row]:
    del context  # Nothing here depends on data.
    gamma, seed = run["gamma"], run["seed"]
    rng = np.random.default_rng(seed)
    X, y = draw_samples(gamma, run["n_samples"], rng)
    tests = COMMON.draw(rng, N_TEST), RARE.draw(rng, N_TEST)
    circles = {
        STANDARD: boundary(gamma, rebalanced=False),
        IDEAL: boundary(gamma, rebalanced=True),
    }
    rows: list[Row] = []
    # On such small matrices, synchronising threads takes longer than the work.
    with one_blas_thread():
        learnt = _fit_boundaries(X, y, seed, run["width"])
        for method in LOOKS:
            circle = circles.get(method)
            is_rare = learnt[method] if circle is None else circle.inside
            outline = (
                _outline(is_rare, circles[IDEAL])
                if circle is None
                else np.full(N_DIRECTIONS, circle.radius)
            )
            row: dict[str, Any] = {
                **run,
                "method": method,
                "radius": float(np.median(outline)),
                "common": float(1 - is_rare(tests[0]).mean()),
                "rare": float(is_rare(tests[1]).mean()),
            }
            if seed == 0 and run["width"] == WIDTH:
                row["outline"] = outline.round(4).tolist()
            rows.append(row)
    return rows


def _fit_boundaries(
    X: Array, y: Array, seed: int, width: float
) -> dict[str, Callable[[Array], Array]]:
    """Least squares on random Fourier features, which can represent round boundaries."""
    shared: dict[str, Any] = {
        "regularization": 1e-5 * len(X),
        "n_random_features": 300,
        "feature_map": RFF(gamma=1 / (2 * width**2)),
        "random_state": seed,
    }
    plain = RLSClassifier(recoding=0.0, scoring="regression", **shared).fit(X, y)
    weighted = RebalancedRLSClassifier(**shared).fit(X, y)

    def recoded(recoding: float) -> Callable[[Array], Array]:
        # Recoding scales the columns of the weights: one model serves all values.
        return lambda places: plain.set_params(recoding=recoding).predict(places) == -1

    return {
        NAIVE: recoded(0.0),
        RECODED: recoded(1.0),
        REBALANCED: lambda places: np.asarray(weighted.predict(places) == -1),
    }


def _outline(is_rare: Callable[[Array], Array], circle: Circle) -> Array:
    """Distance from the centre of the circle to the learnt boundary, in each direction."""
    distances = np.linspace(0, 2.5 * circle.radius, 126)[1:]
    places = np.concatenate([circle.at(np.full(N_DIRECTIONS, r)) for r in distances])
    inside = is_rare(places).reshape(len(distances), N_DIRECTIONS)
    # The first other prediction on the way out: far from all samples, predictions are arbitrary.
    ends: Array = np.where(inside.all(axis=0), distances[-1], distances[inside.argmin(axis=0)])
    # The boundary is between this place and the one before.
    return np.asarray(ends - (distances[1] - distances[0]) / 2)


def _draw_fig1(figure: Figure, table: Table) -> None:
    panels = figure.subplots(1, len(GAMMAS), sharex=True, sharey=True)
    for axes, gamma in zip(panels, GAMMAS, strict=True):
        _draw_samples(axes, gamma)
        for method, (colour, line, label) in LOOKS.items():
            found = table.where(gamma=gamma, method=method)
            outline = next(row["outline"] for row in found if "outline" in row)
            places = boundary(gamma, rebalanced=True).at(np.array([*outline]))
            places = np.concatenate([places, places[:1]])
            axes.plot(*places.T, line, color=colour, label=label, linewidth=1.3)
        # The part of the plane with both centres; learnt boundaries go far beyond it.
        axes.set(title=f"common class {100 * gamma:.0f} %", xlabel="first feature")
        axes.set(aspect="equal", xlim=(-2.4, 3.7), ylim=(-2.4, 2.4))
    panels[0].set_ylabel("second feature")
    add_legend(figure, panels[0], place="lower center", columns=4)


def _draw_samples(axes: Axes, gamma: float) -> None:
    X, y = draw_samples(gamma, 250, np.random.default_rng(0))
    for label, colour, name in ((1, GREY, "common class"), (-1, RED, "rare class")):
        x = X[y == label]
        axes.plot(*x.T, ".", color=colour, alpha=0.35, markersize=3, label=name)


def _exact_radii(table: Table, gamma: Any) -> tuple[float, float]:
    standard, ideal = (table.mean("radius", method=m, gamma=gamma) for m in (STANDARD, IDEAL))
    return standard, ideal


def _boundaries_differ(table: Table) -> list[Verdict | bool]:
    """Whether only the standard boundary gives way to the common class."""
    (balanced, ideal), (unequal, stays) = (_exact_radii(table, g) for g in (first, last))
    helps = points("rare", "method", IDEAL, STANDARD).verdict(table.where(gamma=last), WORDS)
    return [unequal < balanced and bool(np.isclose(ideal, stays)), helps]


def _finds(method: str, which: str, exact: str) -> Claim:
    def error(rows: Table) -> float:
        return rows.mean("radius", method=method) / rows.mean("radius", method=exact) - 1

    return Claim(
        f"By the paper's equations least squares find the {which} boundary when they are {method} "
        "(within 10 % of the radius).",
        lambda table: [each_seed(table, error, name=f"{method}, error of the radius").within(0.1)],
        over=("gamma",),
    )


FIG1 = Experiment(
    name="icra2017-fig1",
    title="Fig. 1 of Camoriano et al. 2017: Bayes boundaries of a common and a rare class",
    shows="Exact boundaries for five shares, standard and rebalanced, and learnt ones.",
    runs=_fig1_runs,
    measure=_fig1_measure,
    claims={
        "balanced": Claim(
            "Both exact boundaries are the same for balanced classes.",
            lambda table: [bool(np.isclose(*_exact_radii(table, first)))],
        ),
        "unequal": Claim(
            "The standard boundary moves towards the rare class if the other is more common, and "
            "the rebalanced one stays.",
            _boundaries_differ,
        ),
        NAIVE: _finds(NAIVE, "standard", STANDARD),
        RECODED: _finds(RECODED, "rebalanced", IDEAL),
        REBALANCED: _finds(REBALANCED, "rebalanced", IDEAL),
    },
    where={"width": WIDTH, "n_samples": last},
    figure=_draw_fig1,
    keys=("gamma", "method", "width", "n_samples", "seed"),
    exact=("radius", "common", "rare"),
    drawn=("outline",),
    size=(10.0, 3.1),
)


# --- Table I: naive, rebalanced and recoded least squares on a new class

STYLES = {
    NAIVE: Style("naive", BLACK, "X"),
    REBALANCED: Style("rebalanced (batch only)", ORANGE, "s"),
    RECODED: Style("recoded", BLUE, "o"),
    AUTO: Style('recoding "auto", paper\'s rule', GREEN, "^"),
    OURS: Style("ours, by leave-one-out", RED, "D"),
}
COUNTS = (1, 5, 10, 50, 100, 500)
# Numbers of examples by which claims about few examples are judged.
FEW = (1, 5, 10)
# Position of the new class in each data set; in the paper it is digit 8.
PLACES = {"mnist": 8, "cifar100": 27, "caltech101": 50}
# With one example of the new class the lead of recoding on CIFAR-100 is small: more seeds.
N_SEEDS = {"cifar100": 20}
# Runs that show what a claim depends on: what is varied on which data, and its values. Penalties
# are multiples of the mean square of the features times the number of examples; places are
# positions of other new classes.
VARIED: dict[str, dict[str, tuple[float, ...]]] = {
    "mnist": {"penalty": (0.01, 0.1, 1.0, 10.0)},
    "cifar100": {"recoding": (0.6, 0.7, 0.8, 0.9, 1.0)},
    "caltech101": {"n_components": (16, 32, 64, 256), "place": (5, 15, 25, 35, 45)},
}
# The paper's findings on digits and on robots' objects differ; we have other objects.
DIGITS = ("mnist", "digits")
OBJECTS = (
    "cifar100_efflite0_pca256",
    "caltech101_efflite0_224",
    "mixture of 28",
    "mixture of 51",
)
# Table I in percent, by the data and the examples of the new class: over all classes and on the new
# one, each naive, rebalanced, recoded.
PRINTED = {
    ("mnist", "MNIST"): {
        1: ((79.2, 79.7, 79.7), (0.0, 7.4, 9.5)),
        5: ((79.1, 82.5, 80.3), (0.0, 39.6, 17.5)),
        10: ((79.2, 83.6, 81.0), (0.0, 49.5, 25.1)),
        50: ((79.2, 85.5, 83.9), (0.0, 73.5, 49.1)),
        100: ((79.2, 85.9, 85.1), (2.0, 75.5, 62.7)),
    },
    ("cifar100_efflite0_pca256", "iCubWorld28, fc7 of CaffeNet"): {
        1: ((77.6, 76.8, 77.7), (0.0, 0.4, 8.0)),
        5: ((77.6, 77.9, 78.6), (0.0, 8.1, 38.5)),
        10: ((77.6, 78.3, 78.9), (0.0, 23.7, 49.6)),
        50: ((77.7, 80.0, 80.0), (5.4, 73.9, 75.0)),
        100: ((78.6, 80.2, 80.1), (39.1, 85.9, 86.5)),
        500: ((80.2, 80.1, 80.1), (89.3, 93.8, 94.8)),
    },
    ("caltech101_efflite0_224", "RGB-D, fc6 of CaffeNet"): {
        1: ((80.4, 78.6, 83.3), (0.0, 62.0, 72.2)),
        5: ((80.4, 83.0, 83.9), (0.0, 91.7, 99.9)),
        10: ((80.4, 83.8, 83.6), (2.8, 94.7, 100.0)),
        50: ((82.3, 84.3, 83.5), (96.6, 100.0, 100.0)),
        100: ((82.4, 84.4, 83.5), (100.0, 100.0, 100.0)),
        500: ((82.3, 84.1, 84.1), (100.0, 100.0, 100.0)),
    },
}


def _published() -> Iterator[Row]:
    for (name, data), block in PRINTED.items():
        for count, columns in block.items():
            for method, *shares in zip((NAIVE, REBALANCED, RECODED), *columns, strict=True):
                total, new = (share / 100 for share in shares)
                row = {"data": name, "n_new": count, "method": method, "paper's data": data}
                yield {**row, "total": total, "new_class": new}


def _printed(column: int, *methods: str) -> dict[str, str]:
    """The paper's numbers with 10 examples of the new class, for each data set."""
    told = {}
    for (name, data), block in PRINTED.items():
        shares = dict(zip((NAIVE, REBALANCED, RECODED), block[10][column], strict=True))
        numbers = ", ".join(f"{method} {shares[method]}" for method in methods)
        told[name] = f"{numbers} % with 10 examples ({data.partition(',')[0]})"
    return told


def _table1_runs(context: Context) -> list[Run]:
    found: list[Run] = []
    for name in context.names:
        seeds = context.seeds(N_SEEDS.get(name, 5))
        found += grid(data=[name], seed=seeds)
        found += grid(data=[name], seed=seeds, part=[OURS])
        if context.data is None:
            for part, values in VARIED[name].items():
                some = context.scaled(values, values[-1:])
                found += grid(data=[name], seed=context.seeds(), part=[part], value=some)
    return found


def _table1_measure(context: Context, run: Run) -> list[Row]:
    part, value, seed = run.get("part"), run.get("value"), run["seed"]
    data, setup = context.dataset(run["data"]), setup_of(context, run["data"])
    used = principal_components(data, run["value"]) if part == "n_components" else data
    place = run["value"] if part == "place" else PLACES[run["data"]]
    task = draw_task(used, setup, place, seed)
    models = _models(part, run.get("value", setup.recoding), setup.recoding, seed, task)
    # Rows of the paper's table have no varied setting; the user's own data have no printed numbers.
    shared = {
        "data": data.name if context.data is None else f"{data.name}, own data",
        "seed": seed,
        "varied": None if value is None else part,
        "value": value,
    }
    counts = COUNTS if value is None else FEW
    rows: list[Row] = []
    for method, model in models.items():
        taught = learn_new_class(model, task, counts)
        if method == REBALANCED:
            taught = ((n, model.fit(*task.with_new(n))) for n in task.counts(counts))
        rows += [{**shared, "n_new": n, "method": method, **task.accuracies(m)} for n, m in taught]
    return rows


def _models(
    part: str | None, value: float, recoding: float, seed: int, task: Task
) -> dict[str, Any]:
    """The classifiers to compare in the table, or in runs that vary a setting."""
    if part == OURS:
        return {OURS: RLSClassifier(random_state=seed)}
    if part == "recoding":
        return {RECODED: least_squares(seed, value)}
    if part == "penalty":
        X, y = task.known
        penalty = value * float(np.square(X - X.mean(axis=0), dtype=np.float64).sum() / X.shape[1])
        # Rebalancing weighs an example by one over the share of its class, the number of classes
        # on average.
        weight = len(np.unique(y)) + 1
        return {
            RECODED: RLSClassifier(regularization=penalty, recoding=recoding, scoring="regression"),
            REBALANCED: RebalancedRLSClassifier(regularization=penalty * weight),
        }
    models: dict[str, Any] = {NAIVE: least_squares(seed), RECODED: least_squares(seed, recoding)}
    if part is None:
        models[AUTO] = least_squares(seed, "auto")
        models[REBALANCED] = RebalancedRLSClassifier(selection="paper", random_state=seed)
    return models


def principal_components(data: Dataset, n: int) -> Dataset:
    """The data as its first principal components."""
    X = data.X_train.astype(np.float64)
    mean = X.mean(axis=0)
    X -= mean
    _, vectors = np.linalg.eigh(X.T @ X)
    kept = vectors[:, ::-1][:, :n]
    test = (data.X_test - mean) @ kept
    return replace(data, X_train=(X @ kept).astype(np.float32), X_test=test.astype(np.float32))


def while_rare(table: Table) -> Table:
    """Rows in which the new class has fewer examples than the others.

    With as many examples as the others, recoding scales all classes equally and cannot change a
    prediction. Then, at the largest number of examples, both methods have the same accuracies.
    """
    most = table.where(n_new=last)
    same = all(
        most.where(method=NAIVE).column(column).tolist()
        == most.where(method=RECODED).column(column).tolist()
        for column in ("total", "new_class")
    )
    return Table(row for row in table if row["n_new"] < last(table.values("n_new")) or not same)


def _recoding_helps(table: Table) -> list[Verdict]:
    helps = points("new_class", "method", RECODED, NAIVE)
    rare = while_rare(table)
    return [helps.verdict(rare.where(n_new=n), WORDS) for n in rare.values("n_new")]


TABLE1 = Experiment(
    name="icra2017-table1",
    title="Table I of Camoriano et al. 2017: a new class with few examples",
    shows="Accuracy on the new class and over all classes: naive, rebalanced, recoded.",
    sources=SOURCES,
    runs=_table1_runs,
    measure=_table1_measure,
    claims={
        "ignored": Claim(
            "Plain least squares ignore a class with few examples (less than 5 % right).",
            [
                Compare(
                    "new_class",
                    {"method": NAIVE},
                    0.0,
                    below=0.05,
                    name="naive, accuracy on the new class against none",
                )
            ],
            _printed(1, NAIVE),
            where={"n_new": at_most(10)},
        ),
        "helps": Claim(
            "Recoding is above plain least squares on the new class for every number of examples.",
            _recoding_helps,
            _printed(1, RECODED, NAIVE),
        ),
        "total": Claim(
            "Recoding raises the accuracy over all classes too.",
            lambda table: [
                points("total", "method", RECODED, NAIVE).verdict(while_rare(table), WORDS)
            ],
            _printed(0, RECODED, NAIVE),
        ),
        "digits": Claim(
            "Rebalancing, which needs all examples each time, is above recoding on the new class "
            "of digits (here: the mean over 1, 5 and 10 examples).",
            [points("new_class", "method", REBALANCED, RECODED)],
            _printed(1, RECODED, REBALANCED),
            where={"data": DIGITS, "n_new": FEW},
        ),
        "objects": Claim(
            "Recoding is above rebalancing on the new class of the robots' objects, most with few "
            "examples (here: the mean over 1, 5 and 10 examples).",
            [points("new_class", "method", RECODED, REBALANCED)],
            _printed(1, RECODED, REBALANCED),
            where={"data": OBJECTS, "n_new": FEW},
        ),
    },
    where={"varied": None},
    each=("data",),
    figure=Panels(
        [
            Panel("n_new", y, "method", STYLES, {"varied": None}, ticks="measured")
            for y in ("new_class", "total")
        ],
        rows=("data",),
        columns=3,
    ),
    keys=("data", "n_new", "method", "varied", "value", "seed"),
    exact=("total", "new_class", "others"),
    published=tuple(_published()),
    size=(9.0, 3.0),
)


# --- Fig. 2: how much to recode

RECODINGS = tuple(round(0.1 * i, 1) for i in range(11))
# Colours from dark to bright, every second recoding.
SHADES = ("#440154", "#433e85", "#2e6f8e", "#1f9a8a", "#4ec36b", "#bddf26")
# Loss of accuracy on the known classes that counts as none.
KEPT = 0.005


def _fig2_measure(context: Context, run: Run) -> list[Row]:
    data, setup = context.dataset(run["data"]), setup_of(context, run["data"])
    # Each seed has another new class.
    task = draw_task(data, setup, 3 * run["seed"], run["seed"])
    counts = (1, 2, 5, 10, 20, 50, 100, 200, 500)
    rows: list[Row] = []
    for count, model in learn_new_class(least_squares(run["seed"]), task, counts):
        for recoding in RECODINGS:
            model.set_params(recoding=recoding)
            where = {"data": data.name, "recoding": recoding, "n_new": count}
            rows.append({**where, "seed": run["seed"], **task.accuracies(model)})
    return rows


def _grows(table: Table) -> list[Verdict]:
    """Whether recoding helps the new class, and no step of it costs."""

    def smallest_step(rows: Table) -> float:
        new = [rows.mean("new_class", recoding=recoding) for recoding in RECODINGS]
        return min(more - less for less, more in pairwise(new))

    return [
        points("new_class", "recoding", 1.0, 0.0).verdict(table, WORDS),
        each_seed(table, smallest_step, name="smallest step of each seed").above(-KEPT),
    ]


def _best_recoding(table: Table) -> list[Verdict]:
    """Whether a recoding keeps the known classes and helps the new one, by the best of all.

    The best is the largest that does so; if none does, one that may, or the smallest.
    """
    found = [
        [
            points("others", "recoding", recoding, 0.0, above=-KEPT).verdict(table, WORDS),
            points("new_class", "recoding", recoding, 0.0).verdict(table, WORDS),
        ]
        for recoding in RECODINGS[1:]
    ]
    for wanted in (True, None):
        alike = [verdicts for verdicts in found if deciding(verdicts).agrees is wanted]
        if alike:
            return alike[-1]
    return found[0]


FIG2 = Experiment(
    name="icra2017-fig2",
    title="Fig. 2 of Camoriano et al. 2017: how much to recode",
    shows="Accuracy on the new class and on the known ones over its examples, by recoding.",
    sources={"cifar100": SOURCES["cifar100"]},
    runs=lambda context: grid(data=context.names[:1], seed=context.seeds(quick=2)),
    measure=_fig2_measure,
    claims={
        "new class": Claim(
            "Accuracy on the new class grows with recoding; a step of 0.1 may lose 0.5 points.",
            _grows,
        ),
        "known classes": Claim(
            "Accuracy on the known classes falls with recoding.",
            [points("others", "recoding", 0.0, 1.0)],
        ),
        "best": Claim(
            "A recoding keeps the known classes, up to 0.5 points, and helps the new one.",
            _best_recoding,
            "recoding of 0.6, chosen by this rule for table I",
        ),
    },
    where={"n_new": (1, 2, 5, 10)},
    figure=Panels(
        [
            Panel(
                "n_new",
                y,
                "recoding",
                {r: Style(f"recoding {r}", c) for r, c in zip(RECODINGS[::2], SHADES, strict=True)},
                ticks="measured",
            )
            for y in ("new_class", "others")
        ],
        legend="right center",
    ),
    keys=("data", "recoding", "n_new", "seed"),
    exact=EXACT,
    size=(9.0, 3.4),
)


# --- Fig. 3: every class in turn is the new one


def _fig3_measure(context: Context, run: Run) -> list[Row]:
    data, setup = context.dataset(run["data"]), setup_of(context, run["data"])
    n_classes = min(setup.n_classes, len(data.classes))
    # All classes, or a few of them in a quick run.
    step = context.scaled(1, max(1, n_classes // 5))
    rows: list[Row] = []
    for place in range(0, n_classes, step):
        task = draw_task(data, setup, place, run["seed"])
        model = least_squares(run["seed"])
        for count, _ in learn_new_class(model, task, COUNTS, select_once=True):
            for method, recoding in ((NAIVE, 0.0), (RECODED, setup.recoding)):
                model.set_params(recoding=recoding)
                where = {"place": place, "n_new": count, "method": method}
                rows.append({**where, **task.accuracies(model)})
    found = Table(rows)
    # Means over the classes, for the numbers of examples that every class has.
    by_class = [{*found.where(place=p).values("n_new")} for p in found.values("place")]
    return [
        {
            **run,
            "data": data.name,
            "n_new": count,
            "method": method,
            **{column: found.mean(column, n_new=count, method=method) for column in EXACT},
        }
        for count in sorted(set.intersection(*by_class))
        for method in (NAIVE, RECODED)
    ]


FIG3 = Experiment(
    name="icra2017-fig3",
    title="Fig. 3 of Camoriano et al. 2017: every class in turn is the new one",
    shows="Accuracy on the new class, the others and all, naive and recoded, mean over classes.",
    sources=SOURCES,
    runs=lambda context: grid(data=context.names, seed=context.seeds()),
    measure=_fig3_measure,
    claims={
        "recoding": Claim(
            "Recoding is much better on the new class, comparable on the others and better over "
            "all; more than 5 points count as much, a loss of 2 as comparable.",
            [
                points("new_class", "method", RECODED, NAIVE, above=0.05),
                points("others", "method", RECODED, NAIVE, above=-0.02),
                points("total", "method", RECODED, NAIVE),
            ],
            where={"n_new": FEW},
            each=("data",),
        )
    },
    figure=Panels(
        [Panel("n_new", y, "method", STYLES, ticks="measured") for y in EXACT], rows=("data",)
    ),
    keys=("data", "n_new", "method", "seed"),
    exact=EXACT,
    size=(9.5, 3.0),
)


# --- The time of an update

INCREMENTAL, PAPERS, AGAIN = "incremental", "paper's update", "from scratch"
SIZES = (1000, 2000, 5000, 10000, 20000, 50000)
N_TIMED, N_REPETITIONS = 60, 3


def _time_runs(context: Context) -> list[Run]:
    n = len(context.dataset(context.names[0]).y_train)
    sizes = [size for size in SIZES if size <= n] or [n]
    return grid(data=context.names[:1], seed=context.seeds(), n_before=sizes)


def _time_measure(context: Context, run: Run) -> list[Row]:
    data = context.dataset(run["data"])
    order = np.random.default_rng(run["seed"]).permutation(len(data.y_train))
    rows = order[: run["n_before"]]
    X, y = data.X_train[rows], data.y_train[rows]
    # Further examples to time; they repeat when all are used.
    more = np.resize(order[::-1], N_TIMED)

    def untrained() -> RLSClassifier:
        return RLSClassifier(regularization=1.0, recoding=0.5)

    model, at_once = untrained(), untrained().fit(X, y)
    for part in np.array_split(np.arange(len(y)), 10):
        model.partial_fit(X[part], y[part])
    same = np.mean(model.predict(data.X_test) == at_once.predict(data.X_test))

    def one_by_one() -> None:
        for i in more:
            model.partial_fit(data.X_train[i : i + 1], data.y_train[i : i + 1])
            model.predict(data.X_train[i : i + 1])

    X64 = X.astype(np.float64)
    sums = X64.T @ (y[:, None] == np.unique(y)).astype(np.float64)
    factor = np.ascontiguousarray(scipy.linalg.cholesky(X64.T @ X64 + np.eye(X.shape[1])))
    shown = X64[:N_TIMED, None]

    def papers_update() -> None:
        # [Camoriano2017 Alg. 1]: a rank-one update of the factor, then solving.
        for row in shown:
            _core.update_factor(factor, np.ascontiguousarray(row), np.ones(1))
            scipy.linalg.cho_solve((factor, False), sums, check_finite=False)

    timed: dict[str, tuple[Callable[[], Any], int]] = {
        INCREMENTAL: (one_by_one, N_TIMED),
        PAPERS: (papers_update, len(shown)),
        AGAIN: (lambda: untrained().fit(X, y).predict(X[:1]), 1),
    }
    where = {"data": data.name, "n_before": run["n_before"], "seed": run["seed"]}
    # One thread, because the gain by more threads depends on the load of the machine.
    with one_blas_thread():
        return [
            {
                **where,
                "method": method,
                "same_answers": float(same) if method == INCREMENTAL else None,
                "seconds": min(time_call(work) for _ in range(N_REPETITIONS)) / n,
            }
            for method, (work, n) in timed.items()
        ]


def _several_sizes(table: Table) -> bool:
    return len(table.values("n_before")) > 1


UPDATE_TIME = Experiment(
    name="icra2017-update-time",
    title="The time of one more example, by Camoriano et al. 2017",
    shows="Seconds to learn one more example, and to train again, over the examples so far.",
    sources={
        "cifar100": Source(
            "cifar100_efflite0_pca256.npz", partial(mixture, 50, 128, 300, 20, distance=0.6)
        )
    },
    runs=_time_runs,
    measure=_time_measure,
    claims={
        "constant": Claim(
            "The time of an update does not depend on the examples before (at most 1.5 times "
            "longer).",
            [times("seconds", "n_before", last, first, below=1.5)],
            where={"method": INCREMENTAL},
            decides=_several_sizes,
        ),
        "again": Claim(
            "Training again takes longer the more examples there are.",
            [
                times("seconds", "n_before", last, first, where={"method": AGAIN}),
                times("seconds", "method", AGAIN, INCREMENTAL, where={"n_before": last}),
            ],
            decides=_several_sizes,
        ),
        "exact": Claim(
            "Updates are exact; one answer in a thousand may change by rounding.",
            [
                Compare(
                    "same_answers",
                    {"method": INCREMENTAL},
                    1.0,
                    above=-0.001,
                    name="same answers of models taught in parts and at once, against all",
                )
            ],
        ),
    },
    figure=Panels(
        [
            Panel(
                "n_before",
                "seconds",
                "method",
                {
                    INCREMENTAL: Style("RLSClassifier, one more example", BLUE, "o"),
                    PAPERS: Style("the paper's update: factor, then solve", GREEN, "^"),
                    AGAIN: Style("trained again on all examples", ORANGE, "s"),
                },
                ticks="measured",
                options={"yscale": "log"},
            )
        ],
        legend="right center",
    ),
    keys=("data", "n_before", "method", "seed"),
    exact=("same_answers",),
    timed=("seconds",),
    size=(8.0, 3.2),
)

EXPERIMENTS = (FIG1, TABLE1, FIG2, FIG3, UPDATE_TIME)
