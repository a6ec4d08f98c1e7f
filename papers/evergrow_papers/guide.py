"""Which learner when: measurements of our own, in no paper.

The claims back the advice of the guide to choosing a learner. Learners are as installed unless a
name says otherwise.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from evergrow import (
    IGT,
    RTST,
    Embedder,
    ImageClassifier,
    NCMClassifier,
    NCMForestClassifier,
    NCMMetric,
    RLSClassifier,
)
from evergrow.compare import ClassStream, Dataset, Retrained, follow, model_bytes
from evergrow.estimators import HoldOut, ReLU
from evergrow.vision.classifier.components import DEFAULT_STAGES
from evergrow_papers.claims import (
    Claim,
    Difference,
    Verdict,
    Words,
    best,
    over_seeds,
    points,
    times,
)
from evergrow_papers.data import Array, digits, mixture
from evergrow_papers.figures import Panel, Panels
from evergrow_papers.frame import Context, Experiment, Run, Source, grid, time_call
from evergrow_papers.nips2006 import PHOTOGRAPHS
from evergrow_papers.peers import (
    FlyCLClassifier,
    KLDAClassifier,
    RanPACClassifier,
    StreamingLDAClassifier,
)
from evergrow_papers.report import VISUAL_WORDS
from evergrow_papers.table import Row, Table, last

CITATION = "Which learner when: measurements of our own, in no paper"
WORDS = Words(
    settings={"images": "{} images per class", "initial": "{} classes at first"},
    quantities={
        "accuracy": "accuracy",
        "new_class": "accuracy on the new class",
        "others": "accuracy on the other classes",
        "newest": "newest five classes",
        "seconds": "last update, s",
        "milliseconds_per_answer": "one answer, ms",
        "images": "images per class",
        "classes": "classes known",
        "samples": "samples known",
        "initial": "classes at first",
    },
    shares=("accuracy", "new_class", "others", "newest"),
)

# A loss that counts as none.
NOT_BELOW = -0.005
OBJECTS = Source("caltech101_efflite0_224.npz", partial(mixture, 20, 64, 20, 20))
FEATURES = {"features": Source("cifar100_efflite0_pca256.npz", partial(mixture, 20, 64, 100, 20))}
IMAGES = {
    "objects": OBJECTS,
    "birds": Source("cub200_efflite0_224.npz", partial(mixture, 30, 48, 20, 10, distance=0.5)),
    "small photographs": Source("cifar100_efflite0_pca256.npz", digits),
}

# --- Learners that follow streams of classes

LEAST_SQUARES, FIXED = "least squares", "least squares, choices fixed"
FOREST, SUBTREES, RETRAINED = "forest", "forest, RTST", "forest, retrained"
Make = Callable[[Context, int], Any]


def _forest(context: Context, seed: int, **options: Any) -> NCMForestClassifier:
    return NCMForestClassifier(n_jobs=context.n_jobs, random_state=seed, **options)


LEARNERS: dict[str, Make] = {
    LEAST_SQUARES: lambda _, seed: RLSClassifier(random_state=seed),
    "least squares, random features": lambda context, seed: RLSClassifier(
        features=ReLU(context.scaled(2000, 200)), random_state=seed
    ),
    "class means": lambda *_: NCMClassifier(),
    "streaming LDA": lambda *_: NCMClassifier(metric="mahalanobis"),
    # As installed: it grows its leaves, and trees that fall behind are grown again.
    FOREST: _forest,
    "forest, IGT without refresh": partial(_forest, update=IGT(refresh=0.0)),
    SUBTREES: partial(_forest, update=RTST(refresh=0.0)),
    RETRAINED: lambda context, seed: Retrained(partial(_forest, context, seed)),
}
# Choosing penalty and recoding again evaluates the holdout for every class.
WITH_FIXED: dict[str, Make] = {
    **LEARNERS,
    FIXED: lambda _, seed: RLSClassifier(regularization=1.0, recoding=0.5, random_state=seed),
}


def _curves(x: str, y: str, names: Iterable[str] = WITH_FIXED, **options: Any) -> Panel:
    return Panel(x, y, "learner", (*names,), **options)


def few_of_each(data: Dataset, n_images: int, seed: int) -> Dataset:
    """Draw ``n_images`` training samples of every class at random."""
    order = np.random.default_rng(seed).permutation(len(data.y_train))
    mixed = replace(data, X_train=data.X_train[order], y_train=data.y_train[order])
    return mixed.per_class(n_images)


def _numbers(
    title: str, key: str, column: str = "accuracy", split: str = ""
) -> Callable[[Table], str]:
    """Tables of percentages: a row for each learner, a column for each value of a key.

    There is one for each value of the column ``split``, under a title with this value.
    """

    def cell(part: Table) -> str:
        shown = WORDS.number(column, part.mean(column), part.deviation(column)).removesuffix(" %")
        found = len(part.column(column))
        return shown if found > 1 else shown.partition(" ± ")[0] * found

    def show(table: Table) -> str:
        found = []
        for place in table.values(split) if split else [""]:
            mine = table.where(**{split: place}) if split else table
            values = mine.values(key)
            lines = [
                f"| learner | {' | '.join(map(str, values))} |",
                "|---" * (len(values) + 1) + "|",
            ]
            for name in mine.values("learner"):
                cells = (cell(mine.where(learner=name, **{key: value})) for value in values)
                lines.append(f"| {name} | {' | '.join(cells)} |")
            found += [f"{title.format(place)}:", "\n".join(lines)]
        return "\n\n".join(found)

    return show


_experiment = partial(Experiment, exact=("accuracy",), timed=("seconds",))


# --- A handful of images per class


def _images_runs(context: Context) -> list[Run]:
    images = context.scaled((1, 3, 10), (1, 10))
    seeds = context.seeds()
    return grid(data=context.names, images=images, learner=LEARNERS, seed=seeds)


def _images_measure(context: Context, run: Run) -> list[Row]:
    data = few_of_each(context.dataset(run["data"]), run["images"], run["seed"])
    n, chunk = len(data.classes), max(1, len(data.classes) // 10)
    stream = ClassStream(max(2, chunk), chunk, random_state=run["seed"], measure_at=[n])
    (end,) = follow(LEARNERS[run["learner"]](context, run["seed"]), data, stream)
    accuracy = float(np.nanmean(end.class_accuracies))
    return [{**run, "accuracy": accuracy, "seconds": end.last_seconds}]


def _best_learner(table: Table, names: Iterable[str]) -> str:
    means = {name: table.mean("accuracy", learner=name) for name in names}
    return max((n for n in means if means[n] == means[n]), key=means.__getitem__)


def _linear_lead(table: Table) -> list[Verdict]:
    """The best of least squares and class means against the best forest."""
    linear = _best_learner(table, [name for name in LEARNERS if "forest" not in name])
    forest = _best_learner(table, [name for name in LEARNERS if "forest" in name])
    return [points("accuracy", "learner", linear, forest).verdict(table, WORDS)]


IMAGES_PER_CLASS = _experiment(
    name="guide-images-per-class",
    title="You have a handful of images per class",
    shows="Accuracy of every learner with 1 to 10 images per class, which come a tenth at a time.",
    sources={"objects": OBJECTS, "characters": Source("omniglot_small.npz", digits)},
    runs=_images_runs,
    measure=_images_measure,
    claims={
        "linear": Claim(
            "With one to five images per class, least squares or class means are the most "
            "accurate.",
            _linear_lead,
            where={"images": (1, 3)},
            each=("data", "images"),
        )
    },
    figure=Panels(
        [
            _curves("images", "accuracy", ticks="measured"),
            _curves("images", "seconds", ticks="measured", options={"yscale": "log"}),
        ],
        rows=("data",),
    ),
    keys=("data", "learner", "images", "seed"),
)


# --- Heads on features of a network

# From the number of random features and a seed to an untrained classifier.
OURS_RANDOM = "least squares, random features"
MEANS, LDA, RANPAC = "class means", "streaming LDA", "RanPAC"
HINDSIGHT = "best fixed penalty in hindsight"
HEADS: dict[str, Callable[[int, int], Any]] = {
    LEAST_SQUARES: lambda _, seed: RLSClassifier(random_state=seed),
    OURS_RANDOM: lambda width, seed: RLSClassifier(features=ReLU(width), random_state=seed),
    "least squares, as many random features as help": lambda _, seed: RLSClassifier(
        features="auto", random_state=seed
    ),
    MEANS: lambda *_: NCMClassifier(),
    LDA: lambda *_: StreamingLDAClassifier(),
    RANPAC: lambda width, seed: RanPACClassifier(width, random_state=seed),
    "Fly-CL": lambda width, seed: FlyCLClassifier(width, random_state=seed),
    "KLDA": lambda width, seed: KLDAClassifier(width, random_state=seed),
    "logistic regression": lambda *_: make_pipeline(
        Normalizer(), LogisticRegression(C=10.0, max_iter=200)
    ),
}


def _predict(head: str, data: Dataset, width: int, seed: int) -> Array:
    """Train a head on all training samples and predict the test samples."""
    if head == HINDSIGHT:
        return _predict_in_hindsight(data)
    model = HEADS[head](width, seed)
    with warnings.catch_warnings():
        # One example of each of many classes looks like a regression to scikit-learn.
        warnings.filterwarnings("ignore", "The number of unique classes")
        model.fit(data.X_train, data.y_train)
    return np.asarray(model.predict(data.X_test))


def _predict_in_hindsight(data: Dataset) -> Array:
    """Predict with the fixed penalty that is best on the test samples; no learner can know it."""
    # Penalties are relative to the variance of the features summed over the examples.
    unit = float(data.X_train.var(axis=0, dtype=np.float64).mean()) * len(data.y_train)
    model = RLSClassifier(regularization=unit, recoding=0.0).fit(data.X_train, data.y_train)
    found: list[Array] = []
    for k in range(-7, 5):
        model.set_params(regularization=10.0 ** (k / 2) * unit)
        found.append(model.predict(data.X_test))
    return max(found, key=lambda predicted: float(np.mean(predicted == data.y_test)))


# Random features in place of the input do not pay off with so few examples, so ours has none.
FIRST_HEADS = (LEAST_SQUARES, HINDSIGHT, *(name for name in HEADS if "least squares" not in name))
FIRST_IMAGES = (1, 2, 3, 5, 10, 20)


def _first_runs(context: Context) -> list[Run]:
    images = context.scaled(FIRST_IMAGES, (1, 3, 10))
    return grid(data=context.names, images=images, learner=FIRST_HEADS, seed=context.seeds(5))


def _first_measure(context: Context, run: Run) -> list[Row]:
    data = few_of_each(context.dataset(run["data"]), run["images"], run["seed"])
    start = time.perf_counter()
    width = context.scaled(2000, 100)
    right = _predict(run["learner"], data, width, run["seed"]) == data.y_test
    seconds = time.perf_counter() - start
    by_class = [float(right[data.y_test == label].mean()) for label in np.unique(data.y_test)]
    means = {"accuracy": float(right.mean()), "mean_over_classes": float(np.mean(by_class))}
    return [{**run, **means, "seconds": seconds}]


def _first_claims(images: int) -> dict[str, Claim]:
    shown = f"With {images} {'image' if images == 1 else 'images'} per class, the default is"
    given: dict[str, Any] = {"where": {"images": images}, "each": ("data",), "together": True}
    below, near = ("2 points", -0.02) if images <= 2 else ("a point", -0.01)
    others = [name for name in FIRST_HEADS if name not in (LEAST_SQUARES, HINDSIGHT)]

    def against(names: Iterable[str], bound: float | None = None) -> list[Any]:
        return best("accuracy", "learner", LEAST_SQUARES, names, above=bound)

    return {
        f"hindsight, {images}": Claim(
            f"{shown} at most {below} below the best fixed penalty of a grid, chosen on the test "
            "images.",
            against([HINDSIGHT], near),
            **given,
        ),
        f"means, {images}": Claim(
            f"{shown} at most half a point below class means and streaming LDA.",
            against([MEANS, LDA], NOT_BELOW),
            **given,
        ),
        f"others, {images}": Claim(f"{shown} ahead of every other head.", against(others), **given),
    }


FIRST_PICTURES = _experiment(
    name="guide-first-pictures",
    title="The first pictures of every class",
    shows="Accuracy of least squares and of other heads of a network, 1 to 20 images per class.",
    sources=IMAGES,
    runs=_first_runs,
    measure=_first_measure,
    claims={key: claim for n in FIRST_IMAGES for key, claim in _first_claims(n).items()},
    figure=Panels(
        [_curves("images", "accuracy", names=FIRST_HEADS, ticks="measured")], rows=("data",)
    ),
    keys=("data", "learner", "images", "seed"),
    exact=("accuracy", "mean_over_classes"),
    numbers=_numbers("Accuracy on {} in %, by images per class", "images", split="data"),
)


# --- All images of every class


def _all_runs(context: Context) -> list[Run]:
    seeds = context.seeds(5)
    # The two that are compared get several draws of their random features, the others one.
    drawn = (OURS_RANDOM, RANPAC)
    others = [name for name in HEADS if name not in drawn]
    return [
        *grid(data=context.names, learner=drawn, seed=seeds),
        *grid(data=context.names, learner=others, seed=seeds[:1]),
    ]


def _all_measure(context: Context, run: Run) -> list[Row]:
    data, width = context.dataset(run["data"]), context.scaled(4000, 200)
    start = time.perf_counter()
    predicted = _predict(run["learner"], data, width, run["seed"])
    seconds = time.perf_counter() - start
    return [{**run, "accuracy": float((predicted == data.y_test).mean()), "seconds": seconds}]


ALL_PICTURES = _experiment(
    name="guide-all-pictures",
    title="All pictures of every class",
    shows="Accuracy of least squares and of other heads of a network, with all training images.",
    sources=IMAGES,
    runs=_all_runs,
    measure=_all_measure,
    claims={
        "ranpac": Claim(
            "With all images, least squares with random features is at most half a point below "
            "RanPAC with as many of them.",
            [points("accuracy", "learner", OURS_RANDOM, RANPAC, above=NOT_BELOW)],
            each=("data",),
            together=True,
        )
    },
    figure=Panels([_curves("data", "accuracy", names=HEADS, bars=True, xlabel=" ")]),
    keys=("data", "learner", "seed"),
    numbers=_numbers("Accuracy in %", "data"),
)


# --- One new class next to many

PAPERS_CHOICES = "least squares, choices of the paper"
NEW_HEADS = (LEAST_SQUARES, PAPERS_CHOICES, MEANS, LDA)
NEW_IMAGES = (1, 3, 10, 50)


def _new_runs(context: Context) -> list[Run]:
    return grid(data=context.names, learner=NEW_HEADS, seed=context.seeds(5))


def _new_measure(context: Context, run: Run) -> list[Row]:
    """Teach all classes but one, then the images of that one class, a few at a time."""
    name, seed = run["learner"], run["seed"]
    data = few_of_each(context.dataset(run["data"]), context.scaled(450, 60), seed)
    new = np.random.default_rng(seed).choice(data.classes)
    mine, tested = data.y_train == new, data.y_test == new
    if name == PAPERS_CHOICES:
        model = RLSClassifier(selection=HoldOut(), scoring="regression", random_state=seed)
    else:
        model = HEADS[name](0, seed)
    model.fit(data.X_train[~mine], data.y_train[~mine])
    rows: list[Row] = []
    known = 0
    for images in context.scaled(NEW_IMAGES, NEW_IMAGES[:3]):
        part = np.flatnonzero(mine)[known:images]
        model.partial_fit(data.X_train[part], data.y_train[part])
        known = images
        right = model.predict(data.X_test) == data.y_test
        found = {"new_class": right[tested].mean(), "others": right[~tested].mean()}
        rows.append({**run, "images": images, **{k: float(v) for k, v in found.items()}})
    return rows


NEW_CLASS = Experiment(
    name="guide-new-class",
    title="One new class next to many",
    shows="Accuracy on a new class of 1 to 50 images and on the classes of 450 next to it.",
    sources={"small photographs": IMAGES["small photographs"]},
    runs=_new_runs,
    measure=_new_measure,
    claims={
        "default": Claim(
            "With a few images of a new class, the default knows it and the other classes at least "
            "as well as the choices of the paper do (at most half a point less).",
            [
                points(column, "learner", LEAST_SQUARES, PAPERS_CHOICES, above=NOT_BELOW)
                for column in ("new_class", "others")
            ],
            each=("images",),
        )
    },
    figure=Panels(
        [
            _curves("images", column, names=NEW_HEADS, ticks="measured")
            for column in ("new_class", "others")
        ]
    ),
    keys=("data", "learner", "images", "seed"),
    exact=("new_class", "others"),
    numbers=lambda table: "\n\n".join(
        _numbers(f"Accuracy on {title} in %, by images of the new class", "images", column)(table)
        for column, title in (("new_class", "the new class"), ("others", "all other classes"))
    ),
)


# --- Photographs in folders: earlier stages of the network next to its output

STAGES, OUTPUT = "with earlier stages (auto)", "output alone (embed)"
# The blocks of the default are scaled to length one, which has an effect of its own.
SCALED = "output alone, scaled to length one"
PHOTOGRAPH_LEARNERS = (STAGES, SCALED, OUTPUT)


def _photographs_runs(context: Context) -> list[Run]:
    images = context.scaled((1, 3, 5, 10, 20), (5,))
    return grid(images=images, learner=PHOTOGRAPH_LEARNERS, seed=context.seeds(5))


def _photographs_measure(context: Context, run: Run) -> list[Row]:
    data = few_of_each(context.dataset("photographs"), run["images"], run["seed"])
    name, seed = run["learner"], run["seed"]
    # Paths as text, or pixels.
    train, test = (
        [str(image) if isinstance(image, str) else image for image in images]
        for images in (data.X_train, data.X_test)
    )
    used = 1
    if name == SCALED:
        # The first block of the default features is the output.
        embedder = Embedder(stages=DEFAULT_STAGES).fit(train)
        width = next(iter(embedder.blocks_.values()))
        model: Any = RLSClassifier(random_state=seed)
        model.fit(embedder.transform(train)[:, :width], data.y_train)
        predicted = model.predict(embedder.transform(test)[:, :width])
    else:
        features = "auto" if name == STAGES else "embed"
        model = ImageClassifier(features, random_state=seed, n_jobs=context.n_jobs)
        predicted = model.fit(train, data.y_train).predict(test)
        used = len(model.learner_.used_blocks_) or 1
    return [{**run, "accuracy": float((predicted == data.y_test).mean()), "blocks": used}]


PHOTOGRAPHS_IN_FOLDERS = Experiment(
    name="guide-photographs",
    title="Photographs in folders",
    shows="Does `ImageClassifier()` gain from the earlier stages of its network, with 1 to 20 "
    'photographs per class? The default, `features="auto"`, against `features="embed"`.',
    sources={"photographs": PHOTOGRAPHS},
    runs=_photographs_runs,
    measure=_photographs_measure,
    claims={
        "stages": Claim(
            '`features="auto"` (used by default) is at most 0.3 points below `features="embed"`.',
            [points("accuracy", "learner", STAGES, OUTPUT, above=-0.003)],
            each=("images",),
        )
    },
    figure=Panels([_curves("images", "accuracy", names=PHOTOGRAPH_LEARNERS, ticks="measured")]),
    keys=("learner", "images", "seed"),
    exact=("accuracy", "blocks"),
    numbers=_numbers("Accuracy in %, by photographs per class", "images"),
)


# --- Features of a forest: scaled, whitened, as they are, or after a learnt metric

AUTO, SCALE, NONE = 'standardize="auto"', 'standardize="scale"', 'standardize="none"'
METRIC = "a learnt metric in front"
TRANSFORMS = (AUTO, SCALE, NONE, METRIC)


def _transform_runs(context: Context) -> list[Run]:
    seeds = context.seeds(5)
    # Classes that a stream begins with; 0 for all classes at once.
    begun = context.scaled((3, 10, 20), (3,))
    named = [name for name in context.names if len(context.dataset(name).classes) > begun[-1]]
    return [
        *grid(data=context.names, learner=TRANSFORMS, initial=[0], seed=seeds),
        *grid(data=named, learner=(AUTO, SCALE), initial=begun, seed=seeds),
    ]


def _transform_measure(context: Context, run: Run) -> list[Row]:
    data, name, seed = context.dataset(run["data"]), run["learner"], run["seed"]
    transform: Any = {SCALE: "scale", NONE: "none"}.get(name, "auto")
    forest = NCMForestClassifier(
        context.scaled(50, 10), n_jobs=context.n_jobs, random_state=seed, standardize=transform
    )
    model = make_pipeline(NCMMetric(random_state=seed), forest) if name == METRIC else forest
    start = time.perf_counter()
    if run["initial"] == 0:
        model.fit(data.X_train, data.y_train)
        seconds = time.perf_counter() - start
        accuracy = float((model.predict(data.X_test) == data.y_test).mean())
    else:
        n = len(data.classes)
        stream = ClassStream(run["initial"], 10, measure_at=[n], random_state=seed)
        (end,) = follow(model, data, stream, ask="measured")
        accuracy, seconds = end.accuracy, end.seconds
    kind = (model[-1] if name == METRIC else model).standardize_
    return [{**run, "features": kind, "accuracy": accuracy, "seconds": seconds}]


FOREST_FEATURES = _experiment(
    name="guide-forest-features",
    title="Features of a forest",
    shows="Accuracy of forests whose features are scaled, whitened, as they are, or learnt.",
    sources={**IMAGES, "words": VISUAL_WORDS, "pixels": Source("mnist.npz", digits)},
    runs=_transform_runs,
    measure=_transform_measure,
    claims={
        f"auto, {initial}": Claim(
            f'With {start}, `standardize="auto"` is at most 0.3 points below '
            '`standardize="scale"`.',
            [points("accuracy", "learner", AUTO, SCALE, above=-0.003)],
            where={"initial": initial},
            each=("data",),
            together=True,
        )
        for initial, start in (
            (0, "all classes at once"),
            *((n, f"{n} classes at first") for n in (3, 10, 20)),
        )
    },
    figure=Panels([_curves("initial", "accuracy", names=TRANSFORMS, bars=True)], rows=("data",)),
    keys=("data", "learner", "initial", "seed"),
    exact=("features", "accuracy"),
    texts=("features",),
    numbers=_numbers(
        "{} classes at first (0: all at once), then ten at a time; accuracy in %",
        "data",
        split="initial",
    ),
)


# --- Thousands of classes

# Retraining forests or subtrees of thousands of classes once per class would take hours.
MANY_NAMES = (LEAST_SQUARES, FIXED, MEANS, LDA, FOREST, "forest, IGT without refresh")
# New classes, one at a time, after all others are known.
N_NEW = 5


def _many_runs(context: Context) -> list[Run]:
    classes = context.scaled((100, 300, 1000, 3000), (50, 200))
    return grid(classes=classes, learner=MANY_NAMES, seed=context.seeds())


@cache
def _generated(n_classes: int, seed: int) -> Dataset:
    return mixture(n_classes, 128, 20, 4, distance=0.6, random_state=seed)


def _many_measure(context: Context, run: Run) -> list[Row]:
    n, seed = run["classes"], run["seed"]
    data = _generated(n, seed)
    stream = ClassStream(n - N_NEW, random_state=seed, measure_at=[n - N_NEW, n])
    learner = WITH_FIXED[run["learner"]](context, seed)
    before, after = follow(learner, data, stream)
    queries = data.X_test[:1000]
    answer = time_call(learner.predict, queries) / len(queries)
    return [
        {
            **run,
            "accuracy": after.accuracy,
            "newest": after.newest,
            "megabytes": model_bytes(learner) / 1e6,
            "seconds": (after.seconds - before.seconds) / N_NEW,
            "milliseconds_per_answer": 1000 * answer,
        }
    ]


LOG: Any = {"options": {"xscale": "log", "yscale": "log"}}
MANY_CLASSES = _experiment(
    name="guide-many-classes",
    title="You have thousands of classes",
    shows="Accuracy, time of one more class and of one answer, with up to 3000 classes known.",
    runs=_many_runs,
    measure=_many_measure,
    claims={
        "simple": Claim(
            "With thousands of classes take class means, streaming LDA, or least squares whose "
            "penalty and recoding are given: each learns one more class faster than the forest.",
            [times("seconds", "learner", FOREST, name) for name in (FIXED, MEANS, LDA)],
        ),
        "accuracy": Claim(
            "Least squares are at most a point less accurate than the forest with many classes.",
            [points("accuracy", "learner", LEAST_SQUARES, FOREST, above=-0.01)],
        ),
    },
    where={"classes": last},
    figure=Panels(
        [
            _curves("classes", "accuracy", options={"xscale": "log"}),
            _curves("classes", "seconds", ylabel="one more class, s", **LOG),
            _curves("classes", "milliseconds_per_answer", **LOG),
        ]
    ),
    keys=("learner", "classes", "seed"),
    exact=("accuracy", "newest", "megabytes"),
    timed=("seconds", "milliseconds_per_answer"),
)


# --- Updates every second


def _update_runs(context: Context) -> list[Run]:
    sizes = context.scaled((50, 150, 450), (20, 60))
    names = context.names[:1]
    return grid(data=names, per_class=sizes, learner=WITH_FIXED, seed=context.seeds())


def _update_measure(context: Context, run: Run) -> list[Row]:
    data = context.dataset(run["data"])
    new = np.random.default_rng(run["seed"]).choice(data.classes)
    old = data.of_classes([label for label in data.classes if label != new])
    known = old.per_class(run["per_class"])
    # Five updates of ten examples.
    examples = data.X_train[data.y_train == new][:50]
    learner = WITH_FIXED[run["learner"]](context, run["seed"])
    learner.partial_fit(known.X_train, known.y_train)
    learner.predict(examples[:1])
    seconds = []
    for batch in np.array_split(examples, 5):
        start = time.perf_counter()
        learner.partial_fit(batch, np.repeat(new, len(batch)))
        learner.predict(batch[:1])
        seconds.append(time.perf_counter() - start)
    right = np.asarray(learner.predict(data.X_test)) == data.y_test
    return [
        {
            **run,
            "samples": len(known.y_train),
            "accuracy": float(right.mean()),
            "new_class": float(right[data.y_test == new].mean()),
            "seconds": float(np.median(seconds)),
        }
    ]


def _under_a_second(table: Table) -> list[Verdict]:
    def against_a_second(name: str) -> Difference:
        seconds = [*np.log(table.where(learner=name).column("seconds"))]
        return over_seeds(seconds, unit="times", name=f"{name} against a second")

    return [against_a_second(FOREST).below(), against_a_second(RETRAINED).above()]


def _constant(name: str, said: str) -> Claim:
    return Claim(
        f"The time of an update of least squares {said} does not grow with the number of known "
        "samples (at most 1.3 times).",
        lambda table: [
            times("seconds", "samples", max, min, below=1.3).verdict(table.where(learner=name))
        ],
    )


UPDATE_TIME = _experiment(
    name="guide-update-time",
    title="You update every second",
    shows="Time of an update by ten examples of a new class, over the number of samples known.",
    sources=FEATURES,
    runs=_update_runs,
    measure=_update_measure,
    claims={
        "fixed": _constant(FIXED, "with its choices fixed"),
        "installed": _constant(LEAST_SQUARES, "as installed"),
        "forest": Claim(
            "The forest keeps up with an update every second, retraining does not.",
            _under_a_second,
            where={"samples": last},
        ),
    },
    figure=Panels(
        [
            _curves("samples", "seconds", ylabel="update by 10 examples, s", **LOG),
            _curves("samples", "new_class", options={"xscale": "log"}),
        ]
    ),
    keys=("data", "learner", "per_class", "seed"),
    exact=("samples", "accuracy", "new_class"),
)


# --- Nightly updates: many classes at once, and enough time


def _nightly_runs(context: Context) -> list[Run]:
    return grid(data=context.names[:1], learner=LEARNERS, seed=context.seeds())


def _nightly_measure(context: Context, run: Run) -> list[Row]:
    data = context.dataset(run["data"])
    n = len(data.classes)
    stream = ClassStream(max(1, n // 2), max(1, n // 10), random_state=run["seed"])
    learner = LEARNERS[run["learner"]](context, run["seed"])
    return [
        {
            **run,
            "classes": measured.n_classes,
            "accuracy": measured.accuracy,
            "newest": measured.newest,
            "seconds": measured.last_seconds,
        }
        for measured in follow(learner, data, stream)
    ]


def _against_retrained(names: Sequence[str], bound: float) -> Callable[[Table], list[Verdict]]:
    def judge(table: Table) -> list[Verdict]:
        chosen = _best_learner(table, names)
        claim = points("accuracy", "learner", chosen, RETRAINED, above=bound)
        return [claim.verdict(table, WORDS)]

    return judge


NIGHTLY = _experiment(
    name="guide-nightly",
    title="You update at night",
    shows="Accuracy and time of every learner when a tenth of the classes comes at a time.",
    sources=FEATURES,
    runs=_nightly_runs,
    measure=_nightly_measure,
    claims={
        "retraining": Claim(
            "With a night for every update, retraining the forest gains little over updating it, "
            "less than 2 points.",
            _against_retrained((FOREST, SUBTREES), -0.02),
        ),
        "never retrained": Claim(
            "A learner that is never retrained is as accurate as the retrained forest, half a "
            "point below at most.",
            _against_retrained([name for name in LEARNERS if name != RETRAINED], NOT_BELOW),
        ),
    },
    where={"classes": last},
    figure=Panels(
        [
            _curves("classes", "accuracy"),
            _curves("classes", "newest"),
            _curves("classes", "seconds", ylabel="one night, s", options={"yscale": "log"}),
        ]
    ),
    keys=("data", "learner", "classes", "seed"),
    exact=("accuracy", "newest"),
)
