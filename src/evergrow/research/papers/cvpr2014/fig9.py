"""Fig. 9: RUST when several classes come at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evergrow.research.experiments.contrasts import combined, contrast_of
from evergrow.research.experiments.drawing import BLUE, GREEN, ORANGE, RED
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.cvpr2014.claims import ANYTHING, gain, plus_minus
from evergrow.research.papers.cvpr2014.curves import Style, legend_above, panels, plot_curve
from evergrow.research.papers.cvpr2014.data import (
    DATA_NAMES,
    NOTES,
    SOURCES,
    data_names,
    initials,
    last_class,
)
from evergrow.research.papers.cvpr2014.growing import (
    MEASURES,
    baseline_run,
    measure_in_sweep,
    points,
    relative_to_baseline,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

KEYS = ("data", "strategy", "chunk", "seed", "n_classes")
INITIAL, EVERY = 10, 10
END, QUICK_END = 50, 30
CHUNKS = (1, 5, 10)
COLOURS = ((ORANGE, "v"), (GREEN, "D"), (BLUE, "^"), (RED, "s"))


def runs(lab: Lab) -> list[Run]:
    """One run per data set, seed and chunk, and one of retraining."""
    found: list[Run] = []
    for name in data_names(lab, *SOURCES):
        end = last_class(lab, name, lab.scaled(END, QUICK_END))
        # All at once must be more than one at a time.
        initials(lab, name, [INITIAL], end, to_come=2)
        at = points(INITIAL, end, EVERY)
        chunks = [chunk for chunk in CHUNKS if chunk < end - INITIAL]
        for seed in lab.seeds():
            baseline = baseline_run(name, seed, at)
            grown = {**baseline, "strategy": "rust"}
            found.append(baseline)
            found += [{**grown, "chunk": chunk} for chunk in chunks]
            found.append({**grown, "chunk": end - INITIAL, "at": [INITIAL, end]})
    return found


def measure(lab: Lab, run: Run) -> list[Row]:
    """Grow with RUST, or train from scratch where it is measured."""
    return measure_in_sweep(lab, run, KEYS)


def draw(figure: Figure, table: Table) -> None:
    """Accuracy, test time and training time over the classes, one row per data set."""
    datas = table.values("data")
    grid = panels(figure, len(datas), 3)
    for row, data in zip(grid, datas, strict=True):
        accuracy, comparisons, seconds = row
        grown = table.where(data=data, strategy="rust")
        chunks = grown.values("chunk")
        for chunk, (colour, marker) in zip(chunks, COLOURS, strict=False):
            label = "all at once" if chunk == max(chunks) else f"{chunk} at a time"
            style = Style(label, colour, marker)
            chosen = grown.where(chunk=chunk)
            plot_curve(accuracy, chosen.curve("n_classes", "relative"), style, scale=100)
            plot_curve(comparisons, chosen.curve("n_classes", "comparisons"), style)
            plot_curve(seconds, chosen.curve("n_classes", "seconds"), style)
        accuracy.set(title=DATA_NAMES[data], ylabel="accuracy, % of retrained")
        comparisons.set_ylabel("distances per tree\nand test image")
        seconds.set_ylabel("training so far, CPU s")
    for axes in grid[-1]:
        axes.set_xlabel("classes")
    legend_above(figure, grid[0][0])


def judge(table: Table) -> list[Finding]:
    """Chunks save time; only large ones gain accuracy."""
    found: list[Finding] = []
    for data in table.values("data"):
        grown = table.where(data=data, strategy="rust")
        end = max(grown.values("n_classes"))
        last = grown.where(n_classes=end)
        where = f"On {DATA_NAMES[data]}, {INITIAL} to {end} classes"
        found += [_accuracy(last, where), _time(last, where)]
    return found


def _accuracy(last: Table, where: str) -> Finding:
    chunks = last.values("chunk")
    shown = ", ".join(f"{plus_minus(last, 'relative', chunk=c)} with {c}" for c in chunks)
    one, few = CHUNKS[:2]
    small, large = (gain(last, "relative", "chunk", one, chunk) for chunk in (few, max(chunks)))
    by_seed = [last.where(seed=seed) for seed in last.values("seed")]
    beyond_half = contrast_of(
        [
            gain(mine, "relative", "chunk", one, max(chunks)).difference / 2
            - gain(mine, "relative", "chunk", one, few).difference
            for mine in by_seed
        ]
    )
    changes = f"Five at a time change {100 * small.difference:+.1f} points, all at once "
    return Finding(
        "In the paper only large chunks are more accurate than classes one at a time; less than "
        "half of what all at once gain counts as no gain.",
        f"{where}, in % of the retrained accuracy: {shown} at a time."
        + (f" {changes}{100 * large.difference:+.1f}." if few in chunks else ""),
        combined([large.verdict, beyond_half.verdict]) if few in chunks else None,
    )


def _time(last: Table, where: str) -> Finding:
    seconds = {c: last.mean("seconds", chunk=c) for c in last.values("chunk")}
    shown = ", ".join(f"{s:.3g} s with {c}" for c, s in seconds.items())
    few, one = CHUNKS[1], CHUNKS[0]
    return Finding(
        "In the paper five classes at a time already shorten training.",
        f"{where}: {shown} at a time.",
        gain(last, "seconds", "chunk", few, one, few_seeds_noise=ANYTHING).verdict,
    )


EXPERIMENT = Experiment(
    name="cvpr2014-fig9",
    title="Fig. 9 of Ristin et al. 2014: several classes at a time",
    shows="Accuracy, test time and training time of RUST by the number of classes per update.",
    sources=SOURCES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=KEYS,
    exact=MEASURES,
    timed=("seconds",),
    complete=relative_to_baseline,
    size=(9.5, 3.0),
    notes=(*NOTES, "Times are processor seconds of all threads."),
)
