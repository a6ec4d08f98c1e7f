"""Pictures of teaching one object at a time: ``python -m benchmarks.linear.plots FOLDER``."""

from __future__ import annotations

from pathlib import Path

import click
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_curve
from threadpoolctl import threadpool_limits

from benchmarks.data import bird_features, image_features, mixture, mnist, object_features
from benchmarks.linear.imbalance import METHODS, imbalanced
from benchmarks.linear.one_example import seconds_per_example
from benchmarks.linear.rejection import novelties
from benchmarks.measure import THREADS, median_seconds
from evergrow import NCMClassifier, NCMMetric
from evergrow.drawing import BLACK, BLUE, GREEN, ORANGE, PINK, RED, STYLE
from evergrow.experiments.icra2017.table1 import PRINTED

__all__ = ["main"]

N_FEATURES, N_CLASSES = 512, 100


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--quick", is_flag=True, help="Small generated data, to try the drawing.")
def main(folder: Path, quick: bool) -> None:
    """Measure and draw four SVG files into FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE), threadpool_limits(THREADS):
        update_time(folder, quick)
        imbalance(folder, quick)
        rejection(folder, quick)
        metric(folder, quick)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def update_time(folder: Path, quick: bool) -> None:
    """Seconds for one more example, over how many were learnt before (fig. 3's claim)."""
    sizes = (1000, 3000) if quick else (1000, 10000, 100000, 1000000)
    ours = seconds_per_example(N_FEATURES, N_CLASSES, sizes)
    rng = np.random.default_rng(0)
    retrained = {}
    for n in [size for size in sizes if size <= 100000]:
        X, y = rng.standard_normal((n, N_FEATURES), dtype=np.float32), np.arange(n) % N_CLASSES
        retrained[n] = median_seconds(lambda: RidgeClassifier().fit(X, y))  # noqa: B023
    figure, axes = plt.subplots(figsize=(4.4, 3.0))
    axes.loglog(
        [*retrained],
        [1e3 * s for s in retrained.values()],
        "s-",
        color=ORANGE,
        label="ridge trained again",
    )
    axes.loglog(
        [*ours],
        [1e3 * s for s in ours.values()],
        "o-",
        color=BLUE,
        label="RLSClassifier, one more example",
    )
    axes.set_xlabel("examples learnt before")
    axes.set_ylabel("milliseconds")
    axes.set_title(f"One more example, {N_FEATURES} features, {N_CLASSES} classes")
    axes.set_ylim(bottom=0.3)
    axes.legend()
    _save(figure, folder / "teaching_time.svg")


def imbalance(folder: Path, quick: bool) -> None:
    """Accuracy on a new class and on all, over the number of its examples (table I)."""
    split = mnist()
    is_mnist = split.name == "MNIST"
    means = imbalanced(split, 1000 if is_mnist else 100, 1 if quick else 10)
    counts = sorted({count for _, count in means})
    figure, both = plt.subplots(1, 2, figsize=(7.6, 3.1), sharex=True)
    looks = dict(zip(METHODS, (BLACK, ORANGE, BLUE, GREEN), strict=True))
    names = {
        "naive": "no recoding",
        "rebalanced": "rebalanced (batch only)",
        "recoded": "recoding 0.7",
        "auto": '"auto" (the default)',
    }
    axes: Axes
    for which, axes in ((1, both[0]), (0, both[1])):
        for name in METHODS:
            accuracies = [float(means[name, n][which]) for n in counts]
            axes.plot(counts, accuracies, "o-", color=looks[name], label=names[name])
        if is_mnist:
            for place, name in enumerate(METHODS[:3]):
                printed = [PRINTED[n][which][place] for n in PRINTED]
                axes.plot([*PRINTED], printed, "x", color=looks[name], alpha=0.8)
        axes.set_xscale("log")
        axes.set_xticks(counts, [str(n) for n in counts])
        axes.minorticks_off()
        axes.set_xlabel("examples of the new class")
        axes.set_title("Accuracy on the new class, %" if which else "Accuracy on all classes, %")
    both[0].plot([], [], "x", color=BLACK, label="the paper's figures")
    both[0].legend(fontsize=8)
    _save(figure, folder / "teaching_imbalance.svg")


def rejection(folder: Path, quick: bool) -> None:
    """Unknown examples noticed over false alarms, mean over random splits of the classes."""
    splits = (
        [(mixture(2000, 64, 40, n_test=2000), 20, 3, BLUE, "-")]
        if quick
        else [
            (object_features(), 60, 20, BLUE, "-"),
            (image_features(), 50, 3, ORANGE, "-"),
            (bird_features(), 100, 3, GREEN, "--"),
        ]
    )
    grid = np.linspace(0, 1, 201)
    figure, axes = plt.subplots(figsize=(4.4, 3.4))
    for split, n_known, n_splits, colour, line in splits:
        curves = []
        for seed in range(n_splits):
            _, novelty, known = novelties(split, n_known, seed)
            false_alarms, noticed, _ = roc_curve(~known, novelty)
            curves.append(np.interp(grid, false_alarms, noticed))
        n_unknown = len(np.unique(split.y)) - n_known
        label = f"{split.name}: {n_known} known, {n_unknown} unknown"
        axes.plot(100 * grid, 100 * np.mean(curves, axis=0), line, color=colour, label=label)
    axes.plot([0, 100], [0, 100], ":", color=BLACK, label="guessing")
    axes.axvline(10, color=RED, linewidth=0.9, linestyle="--", label="false_alarms=0.1")
    axes.set_xlabel("known examples rejected, %")
    axes.set_ylabel("unknown examples rejected, %")
    axes.legend(fontsize=7, loc="lower right")
    _save(figure, folder / "rejection_roc.svg")


def metric(folder: Path, quick: bool) -> None:
    """Accuracy over all classes, by how many the metric was learnt from (fig. 10)."""
    split = mixture(2000, 32, 20, n_test=1000) if quick else image_features()
    classes = np.random.default_rng(0).permutation(np.unique(split.y))
    counts = [round(share * len(classes)) for share in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)]
    learnt = []
    for n in counts:
        first = np.isin(split.y, classes[:n])
        model = NCMClassifier(metric=NCMMetric(random_state=0))
        model.partial_fit(split.X[first], split.y[first])
        if n < len(classes):
            model.partial_fit(split.X[~first], split.y[~first])
        learnt.append(100 * model.score(split.X_test, split.y_test))
    figure, axes = plt.subplots(figsize=(4.4, 3.0))
    axes.plot(counts, learnt, "o-", color=BLUE, label="learnt metric")
    for name, kind, colour in (
        ("class means", "euclidean", ORANGE),
        ("shared covariance of all classes", "mahalanobis", PINK),
    ):
        plain = NCMClassifier(metric=kind).fit(split.X, split.y)  # type: ignore[arg-type]
        accuracy = 100 * plain.score(split.X_test, split.y_test)
        axes.axhline(accuracy, color=colour, linestyle="--", label=name)
    axes.set_xlabel(f"classes the metric was learnt from, of {len(classes)}")
    axes.set_ylabel(f"accuracy on all {len(classes)} classes, %")
    axes.legend(fontsize=8)
    _save(figure, folder / "metric_classes.svg")


if __name__ == "__main__":
    main()
