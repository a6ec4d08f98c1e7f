"""Fig. 9: RUST with several new classes at a time."""

from __future__ import annotations

from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2014 import plots, protocol

KEYS = ("data", "strategy", "chunk", "seed", "n_classes")
INITIAL, EVERY = 10, 10
END, QUICK_END = 50, 30
CHUNKS = (1, 5, 10)
# Seeds of all chunks, and of those that decide the claim.
N_SEEDS, N_DECIDING = 5, 12
COLOURS = ((ex.ORANGE, "v"), (ex.GREEN, "D"), (ex.BLUE, "^"), (ex.RED, "s"))


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    """One run per data set, seed and chunk, and one of retraining."""
    found: list[ex.Run] = []
    for name in protocol.data_names(context, *protocol.SOURCES):
        end = protocol.last_class(context, name, context.scaled(END, QUICK_END))
        # All at once must be more than one class.
        protocol.initials(context, name, [INITIAL], end, to_come=2)
        at = protocol.points(INITIAL, end, EVERY)
        chunks = [chunk for chunk in CHUNKS if chunk < end - INITIAL]
        for seed in context.seeds(N_DECIDING):
            few = seed >= N_SEEDS
            baseline = protocol.baseline_run(name, seed, [INITIAL, end] if few else at)
            grown = {**baseline, "strategy": "rust"}
            found.append(baseline)
            deciding = [chunk for chunk in chunks if chunk in CHUNKS[:2] or not few]
            found += [{**grown, "chunk": chunk} for chunk in deciding]
            found.append({**grown, "chunk": end - INITIAL, "at": [INITIAL, end]})
    return found


def _draw_row(row: list[ex.Axes], table: ex.Table, data: str) -> None:
    """Accuracy, test time and training time over the classes."""
    accuracy, comparisons, seconds = row
    grown = table.where(strategy="rust")
    chunks = grown.values("chunk")
    for chunk, (colour, marker) in zip(chunks, COLOURS, strict=False):
        label = "all at once" if chunk == max(chunks) else f"{chunk} at a time"
        style = plots.Style(label, colour, marker)
        chosen, columns = grown.where(chunk=chunk), ("relative", "comparisons", "seconds")
        plots.plot_columns(row, chosen, "n_classes", columns, style)
    accuracy.set(title=data, ylabel=plots.RELATIVE)
    comparisons.set_ylabel(plots.DISTANCES)
    seconds.set_ylabel("training so far, CPU s")


def _accuracy(table: ex.Table, where: str) -> ex.Finding:
    last = table.where(strategy="rust")
    chunks = last.values("chunk")
    shown = ", ".join(f"{ex.format_mean(last, 'relative', chunk=c)} with {c}" for c in chunks)
    one, few = CHUNKS[:2]
    small, large = (
        ex.compare_values(last, "relative", "chunk", one, chunk) for chunk in (few, max(chunks))
    )
    beyond_half = ex.compare_each_seed(
        last,
        lambda mine: (
            ex.compare_values(mine, "relative", "chunk", one, max(chunks)).mean / 2
            - ex.compare_values(mine, "relative", "chunk", one, few).mean
        ),
        name="half the gain of all at once against that of five at a time",
    )
    decision = ex.combine_verdicts([large.verdict, beyond_half.verdict]) if few in chunks else None
    gains = ", ".join(
        f"{ex.compare_values(last, 'relative', 'chunk', one, chunk).interval} with {chunk}"
        for chunk in chunks
        if chunk != one
    )
    changes = f"Five at a time change {100 * small.mean:+.1f} points, all at once "
    return ex.Finding(
        "In the paper, only large chunks of classes are more accurate than one class at a time. "
        "Five classes at a time must gain less than half of what all at once gain.",
        f"{where}, in % of the retrained accuracy: {shown} at a time."
        + (f" {changes}{100 * large.mean:+.1f}." if few in chunks else ""),
        decision,
        reason=f"The gain over one class at a time depends on the chunk: {gains}.",
    )


def _time(table: ex.Table, where: str) -> ex.Finding:
    last = table.where(strategy="rust")
    seconds = {c: last.mean("seconds", chunk=c) for c in last.values("chunk")}
    shown = ", ".join(f"{s:.3g} s with {c}" for c, s in seconds.items())
    few, one = CHUNKS[1], CHUNKS[0]
    return ex.Finding(
        "In the paper five classes at a time already shorten training.",
        f"{where}: {shown} at a time.",
        ex.compare_ratios(last, "seconds", {"chunk": one}, {"chunk": few}).verdict,
    )


EXPERIMENT = protocol.make_relative_experiment(
    name="cvpr2014-fig9",
    title="Fig. 9 of Ristin et al. 2014: several classes at a time",
    shows="Accuracy, test time and training time of RUST by the number of classes per update.",
    runs=runs,
    measure=partial(protocol.measure_in_sweep, keys=KEYS),
    draw=partial(plots.draw_rows, draw_row=_draw_row, n_columns=3),
    judge=partial(
        protocol.judge_last_rows,
        judges=(_accuracy, _time),
        where=f"On {{data}}, {INITIAL} to {{end}} classes",
    ),
    keys=KEYS,
    size=(9.5, 3.0),
    notes=(*protocol.NOTES, "Times are processor seconds of all threads."),
)
