"""Fig. 9: RUST with several new classes at a time."""

from __future__ import annotations

from functools import partial

from evergrow.research.experiments import ExperimentContext, Finding, Run, Table
from evergrow.research.experiments.plots import BLUE, GREEN, ORANGE, RED, Figure, add_legend
from evergrow.research.experiments.verdicts import (
    UNKNOWN_NOISE,
    combine_verdicts,
    compare_seeds,
    compare_values,
    format_mean,
)
from evergrow.research.papers.cvpr2014 import plots, protocol

KEYS = ("data", "strategy", "chunk", "seed", "n_classes")
INITIAL, EVERY = 10, 10
END, QUICK_END = 50, 30
CHUNKS = (1, 5, 10)
COLOURS = ((ORANGE, "v"), (GREEN, "D"), (BLUE, "^"), (RED, "s"))


def _runs(context: ExperimentContext) -> list[Run]:
    """One run per data set, seed and chunk, and one of retraining."""
    found: list[Run] = []
    for name in protocol.data_names(context, *protocol.SOURCES):
        end = protocol.last_class(context, name, context.scaled(END, QUICK_END))
        # All at once must be more than one class.
        protocol.initials(context, name, [INITIAL], end, to_come=2)
        at = protocol.points(INITIAL, end, EVERY)
        chunks = [chunk for chunk in CHUNKS if chunk < end - INITIAL]
        for seed in context.seeds():
            baseline = protocol.baseline_run(name, seed, at)
            grown = {**baseline, "strategy": "rust"}
            found.append(baseline)
            found += [{**grown, "chunk": chunk} for chunk in chunks]
            found.append({**grown, "chunk": end - INITIAL, "at": [INITIAL, end]})
    return found


def _draw(figure: Figure, table: Table) -> None:
    """Accuracy, test time and training time over the classes, one row per data set."""
    datas = table.values("data")
    grid = plots.panels(figure, len(datas), 3)
    for row, data in zip(grid, datas, strict=True):
        accuracy, comparisons, seconds = row
        grown = table.where(data=data, strategy="rust")
        chunks = grown.values("chunk")
        for chunk, (colour, marker) in zip(chunks, COLOURS, strict=False):
            label = "all at once" if chunk == max(chunks) else f"{chunk} at a time"
            style = plots.Style(label, colour, marker)
            chosen, columns = grown.where(chunk=chunk), ("relative", "comparisons", "seconds")
            plots.plot_columns(row, chosen, "n_classes", columns, style)
        accuracy.set(title=protocol.DATA_NAMES[data], ylabel=plots.RELATIVE)
        comparisons.set_ylabel(plots.DISTANCES)
        seconds.set_ylabel("training so far, CPU s")
    for axes in grid[-1]:
        axes.set_xlabel("classes")
    add_legend(figure, grid[0][0])


def _judge(table: Table) -> list[Finding]:
    """Chunks save time; only large ones gain accuracy."""
    found: list[Finding] = []
    for data, end, last in protocol.last_rows(table.where(strategy="rust")):
        where = f"On {data}, {INITIAL} to {end} classes"
        found += [_accuracy(last, where), _time(last, where)]
    return found


def _accuracy(last: Table, where: str) -> Finding:
    chunks = last.values("chunk")
    shown = ", ".join(f"{format_mean(last, 'relative', chunk=c)} with {c}" for c in chunks)
    one, few = CHUNKS[:2]
    small, large = (
        compare_values(last, "relative", "chunk", one, chunk) for chunk in (few, max(chunks))
    )
    by_seed = [last.where(seed=seed) for seed in last.values("seed")]
    beyond_half = compare_seeds(
        [
            compare_values(mine, "relative", "chunk", one, max(chunks)).mean / 2
            - compare_values(mine, "relative", "chunk", one, few).mean
            for mine in by_seed
        ]
    )
    changes = f"Five at a time change {100 * small.mean:+.1f} points, all at once "
    return Finding(
        "In the paper only large chunks are more accurate than classes one at a time; less than "
        "half of what all at once gain counts as no gain.",
        f"{where}, in % of the retrained accuracy: {shown} at a time."
        + (f" {changes}{100 * large.mean:+.1f}." if few in chunks else ""),
        combine_verdicts([large.verdict, beyond_half.verdict]) if few in chunks else None,
    )


def _time(last: Table, where: str) -> Finding:
    seconds = {c: last.mean("seconds", chunk=c) for c in last.values("chunk")}
    shown = ", ".join(f"{s:.3g} s with {c}" for c, s in seconds.items())
    few, one = CHUNKS[1], CHUNKS[0]
    return Finding(
        "In the paper five classes at a time already shorten training.",
        f"{where}: {shown} at a time.",
        compare_values(last, "seconds", "chunk", few, one, few_seeds_noise=UNKNOWN_NOISE).verdict,
    )


EXPERIMENT = protocol.make_relative_experiment(
    name="cvpr2014-fig9",
    title="Fig. 9 of Ristin et al. 2014: several classes at a time",
    shows="Accuracy, test time and training time of RUST by the number of classes per update.",
    runs=_runs,
    measure=partial(protocol.measure_in_sweep, keys=KEYS),
    draw=_draw,
    judge=_judge,
    keys=KEYS,
    size=(9.5, 3.0),
    notes=(*protocol.NOTES, "Times are processor seconds of all threads."),
)
