"""Pictures of visual codebooks: ``python -m benchmarks.codebook.plots FOLDER``."""

from __future__ import annotations

from pathlib import Path

import click
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.svm import LinearSVC

from benchmarks.codebook.accuracy import OBJECT
from benchmarks.codebook.parameters import ALL, Sweep, show, sweeps
from benchmarks.codebook.protocol import (
    BACKGROUND,
    Coding,
    drawn_pictures,
    histograms,
    photographs,
    pool,
    training_descriptors,
)
from benchmarks.measure import THREADS
from evergrow import ERCForest
from evergrow.codebook import word_map
from evergrow.codebook.evaluation import RocCurve, equal_error_rate, roc
from evergrow.drawing import BLACK, BLUE, GREEN, ORANGE, RED, STYLE
from evergrow.features import LocalFeatures, RandomPatches

__all__ = ["main"]

COLOURS = (BLUE, ORANGE, GREEN, RED)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--quick", is_flag=True, help="Few pictures, to try the drawing.")
def main(folder: Path, quick: bool) -> None:
    """Measure, print, and draw two SVG files and a PNG into FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    what_speaks(folder)
    with plt.rc_context(STYLE):
        parameters(folder, quick)
        curves(folder, quick)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def what_speaks(folder: Path) -> None:
    """Where a drawn picture speaks for its class."""
    everything, names = drawn_pictures(60)
    wanted = np.flatnonzero(np.isin(names, ["ring", BACKGROUND]))
    images, classes = [everything[i] for i in wanted], names[wanted]
    local = LocalFeatures("haar", patches=RandomPatches(3000), random_state=0)
    few = LocalFeatures("haar", patches=RandomPatches(150), random_state=1)
    forest = ERCForest(n_words=500, random_state=0, n_jobs=THREADS)
    forest.fit(few.transform(images[1:]), classes[1:])
    word_map(images[0], forest, local, str(classes[0]), folder / "word_map.png")


def parameters(folder: Path, quick: bool) -> None:
    """What the parameters do, as in figure 4 of the paper."""
    found = sweeps(quick)
    show(found)
    trees, leaves, pooling, patches, training, kinds = found
    figure, axes = plt.subplots(2, 3, figsize=(9.6, 5.6))
    for place, sweep in zip(axes.flat, (trees, leaves, pooling, patches, training), strict=False):
        _draw(place, sweep)
    _draw_kinds(axes.flat[5], kinds, trees)
    axes[0, 0].set_ylabel("rate at equal error, %")
    axes[1, 0].set_ylabel("rate at equal error, %")
    _save(figure, folder / "codebook_parameters.svg")


def _draw(axes: Axes, sweep: Sweep) -> None:
    for colour, (curve, rates) in zip(COLOURS, sweep.rates.items(), strict=False):
        numbers = [value for value in rates if value != ALL]
        means = [float(np.mean(rates[value])) for value in numbers]
        spreads = [float(np.std(rates[value], ddof=1)) for value in numbers]
        axes.errorbar(numbers, means, spreads, fmt="o-", color=colour, label=curve, capsize=2)
        if ALL in rates:
            mean = float(np.mean(rates[ALL]))
            axes.axhline(mean, color=colour, linestyle=":", label=f"{curve}, not pruned")
    values = sorted({value for rates in sweep.rates.values() for value in rates if value != ALL})
    if values[-1] > 20:
        axes.set_xscale("log")
    axes.set_xticks(values, [_short(value) for value in values])
    axes.minorticks_off()
    axes.set_title(sweep.title)
    axes.set_xlabel(sweep.parameter)
    axes.legend(fontsize=7)


def _short(number: int) -> str:
    return f"{number / 1000:g}k" if number >= 1000 else str(number)


def _draw_kinds(axes: Axes, kinds: Sweep, trees: Sweep) -> None:
    """Other codebooks of as many words beside the forest of five trees."""
    (by_trees,) = trees.rates.values()
    bars = {"ERC forest": by_trees[5]} | {curve: rates[""] for curve, rates in kinds.rates.items()}
    means = [float(np.mean(rates)) for rates in bars.values()]
    spreads = [float(np.std(rates, ddof=1)) for rates in bars.values()]
    places = np.arange(len(bars))
    axes.errorbar(means, places, xerr=spreads, fmt="o", color=BLUE, capsize=2)
    axes.set_yticks(places, [name.replace(" k-means", "\nk-means") for name in bars])
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_title("codebooks of as many words")
    axes.set_xlabel("rate at equal error, %")


def curves(folder: Path, quick: bool) -> None:
    """ROC curves with their points of equal error."""
    data = photographs(quick)
    name = OBJECT if OBJECT in data.objects else data.objects[0]
    task = data.against_background(name)
    n_few, n_many = (100, 200) if quick else (1000, 8000)
    given = training_descriptors(task, "haar", 0)
    forest = ERCForest(n_words=50 if quick else 1000, n_jobs=THREADS, random_state=0)
    forest.fit(given.rows, given.classes)
    codings = {f"{n} patches": Coding(forest, n) for n in (n_few, n_many)}
    figure, axes = plt.subplots(figsize=(4.2, 3.8))
    for colour, (label, counts) in zip(
        (ORANGE, BLUE), histograms(task, "haar", codings, 0).items(), strict=True
    ):
        positive = task.classes == name
        pooled = pool(counts, "binary", task.trains, positive)
        svm = LinearSVC(random_state=0).fit(pooled[task.trains], positive[task.trains])
        scores, truth = svm.decision_function(pooled[~task.trains]), positive[~task.trains]
        _draw_roc(
            axes,
            roc(scores, truth),
            f"{label}: {100 * equal_error_rate(scores, truth):.1f} %",
            colour,
        )
    axes.plot([0, 1], [1, 0], color=BLACK, linestyle=":", linewidth=1, label="equal error")
    axes.set_xlim(0, 0.5)
    axes.set_ylim(0.5, 1)
    axes.set_xlabel("background taken for the object")
    axes.set_ylabel("objects found")
    axes.set_title(f"{name} against background, ERC forest and linear SVM")
    axes.legend(loc="lower right", frameon=True, framealpha=1, edgecolor="none")
    _save(figure, folder / "codebook_roc.svg")


def _draw_roc(axes: Axes, curve: RocCurve, label: str, colour: str) -> None:
    axes.plot(curve.false_positive_rate, curve.true_positive_rate, color=colour, label=label)


if __name__ == "__main__":
    main()
