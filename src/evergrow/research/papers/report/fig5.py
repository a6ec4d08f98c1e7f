"""Fig. 5 of the report: how many classes come at a time, on spirals."""

from __future__ import annotations

from dataclasses import replace

from evergrow.research import experiments as ex
from evergrow.research.papers.report import plots, protocol

CHUNKS = (2, 4, 8)
# Difference of relative accuracy between chunks that counts as none.
SAME = 0.02

PANELS = (
    *plots.PANELS[:2],
    ("training_seconds", "all training so far, s", 1.0),
)


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    left = protocol.n_classes_of(context) - protocol.INITIAL
    # Larger chunks than there are classes left would give the same stream.
    chunks = [chunk for chunk in CHUNKS if chunk <= left] or CHUNKS[:1]
    return [
        protocol.run_of(context, "NCM", s, chunk=chunk) for s in context.seeds() for chunk in chunks
    ]


def draw(figure: ex.Figure, table: ex.Table) -> None:
    rows = figure.subplots(len(protocol.GROWING), len(PANELS), sharex=True, sharey="col")
    for name, panels in zip(protocol.GROWING, rows, strict=True):
        for axes, (column, label, factor) in zip(panels, PANELS, strict=True):
            for chunk, colour, marker in zip(CHUNKS, ex.COLOURS, ex.MARKERS, strict=False):
                chosen = table.where(strategy=name, chunk=chunk)
                look = {"color": colour, "marker": marker, "label": f"{chunk} classes at a time"}
                plots.draw_curve(axes, chosen, column, factor, **look)
            axes.set_title(name, loc="left")
            axes.set_ylabel(label)
    for axes in rows[-1]:
        axes.set_xlabel("classes")
        sizes = sorted(table.values("n_classes"))
        axes.set_xticks(sizes[:: 1 + len(sizes) // 6])
    rows[0][1].set_ylim(bottom=0)
    rows[0][2].set_ylim(bottom=0)
    ex.add_legend(figure, rows[0][0], columns=len(CHUNKS))


def judge(table: ex.Table) -> list[ex.Finding]:
    end = table.where(n_classes=max(table.values("n_classes")))
    spread = {
        name: ex.compare_extremes(end.where(strategy=name), "relative", "chunk")
        for name in protocol.GROWING
    }
    widest = max(spread, key=lambda name: spread[name].mean)
    several = len(table.values("chunk")) > 1
    return [
        ex.Finding(
            "The report finds that relative accuracy does not depend on the chunk size (at most "
            f"{100 * SAME:.0f} points).",
            f"Here it differs most with {widest}: {100 * spread[widest].mean:.1f} points "
            "between chunks at the end.",
            ex.combine_verdicts(each.below(SAME) for each in spread.values()) if several else None,
        ),
        _falls(
            end,
            "training_seconds",
            "The report finds that several classes at once take less training time.",
            "all training takes {} s",
        ),
        _falls(
            end,
            "comparisons",
            "The report finds that several classes at once make forests that are faster to test.",
            "a test sample costs {} comparisons",
        ),
    ]


def _falls(end: ex.Table, column: str, claim: str, here: str) -> ex.Finding:
    """Whether a cost is lower with the largest chunk than with the smallest, for every strategy."""
    measured = end.values("chunk")
    few, many = ({"chunk": find(measured)} for find in (min, max))
    said, agree = [], []
    for name in protocol.GROWING:
        means = [end.mean(column, strategy=name, chunk=chunk) for chunk in measured]
        said.append(f"{name} " + " / ".join(f"{mean:.3g}" for mean in means))
        sides = end.where(strategy=name), column, few, many
        less = replace(
            ex.compare_ratios(*sides),
            name=f"{name}, {min(measured)} against {max(measured)} at a time",
        )
        agree.append(less.verdict)
    chunks = " / ".join(map(str, measured))
    text = here.format(f"({', '.join(said)})")
    decision = ex.combine_verdicts(agree) if len(measured) > 1 else ex.Verdict(None)
    reason = _explain(end, column) if column == "comparisons" else ""
    return ex.Finding(
        claim,
        f"Here, with {chunks} at a time, {text}.",
        decision,
        reason=reason,
    )


def _explain(end: ex.Table, column: str) -> str:
    """How near retraining, which has all classes at once, the strategies are by chunk."""
    found = "; ".join(
        f"{name} "
        + ", ".join(
            f"{protocol.relative_to_retraining(end, column, strategy=name, chunk=chunk):.2f}"
            for chunk in end.values("chunk")
        )
        for name in protocol.GROWING
    )
    chunks = ", ".join(map(str, end.values("chunk")))
    return (
        "Larger chunks bring a forest nearer to the one that has all classes at once, and this one "
        "costs more to test: relative to it, a test sample costs, with chunks of "
        f"{chunks}, {found}."
    )


EXPERIMENT = protocol.make_experiment(
    name="report-fig5",
    title="Report, fig. 5: two, four or eight classes at a time",
    shows="accuracy, test time and training time of NCM forests by chunk size, on spirals",
    sources=protocol.SPIRALS,
    runs=runs,
    draw=draw,
    judge=judge,
    measure=protocol.measure_spirals,
    size=(9.0, 6.4),
    notes=(
        "Test work is judged by comparisons per tree and sample, which do not depend on how busy "
        "the machine is; seconds are in the picture.",
        "The report does not state the number of trees and the smallest leaf. Here they are 50 "
        "trees (10 in a quick run) and 5 samples. Each seed has its own spirals.",
    ),
)
