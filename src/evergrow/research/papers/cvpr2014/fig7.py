"""Fig. 7: RUST from different numbers of initial classes."""

from __future__ import annotations

from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2014 import plots, protocol

KEYS = ("data", "strategy", "initial", "seed", "n_classes")
INITIALS = (3, 5, 10, 20)
MEASURED = (30, 40, 50)
PAPER_RELATIVE = {3: 0.881, 20: 0.927}
PRINTED = "88.1 % with 3, 92.7 % with 20; the text says about 4.5 points"
# Percentage points of relative accuracy that more initial classes may gain: the paper's.
LIMITED = 4.6
# Seeds of all numbers of initial classes, and of those that decide the claim.
N_SEEDS, N_DECIDING = 5, 12
LOOKS = ((ex.GREEN, "D"), (ex.BLUE, "^"), (ex.RED, "s"))


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    """One run per data set, seed and number of initial classes, and one of retraining."""
    found: list[ex.Run] = []
    for name in protocol.data_names(context, *protocol.SOURCES):
        at = [*dict.fromkeys(protocol.last_class(context, name, n) for n in MEASURED)]
        begun = protocol.initials(context, name, INITIALS, at[0])
        for seed in context.seeds(N_DECIDING):
            few = seed >= N_SEEDS
            baseline = protocol.baseline_run(name, seed, at[-1:] if few else at)
            found.append(baseline)
            deciding = [n for n in begun if n in PAPER_RELATIVE or not few]
            found += [{**baseline, "strategy": "rust", "initial": n} for n in deciding]
    return found


def _draw_row(row: list[ex.Axes], table: ex.Table, data: str) -> None:
    """Relative accuracy and test time over the initial classes."""
    accuracy, comparisons = row
    grown = table.where(strategy="rust")
    for n, (colour, marker) in zip(grown.values("n_classes"), LOOKS, strict=False):
        style = plots.Style(f"at {n} classes", colour, marker)
        chosen, columns = grown.where(n_classes=n), ("relative", "comparisons")
        plots.plot_columns(row, chosen, "initial", columns, style)
        if n == MEASURED[-1]:
            for initial, relative in PAPER_RELATIVE.items():
                plots.plot_published(accuracy, initial, 100 * relative, style)
    accuracy.set(title=f"a) {data}", ylabel=plots.RELATIVE)
    comparisons.set(title=f"b) {data}", ylabel=plots.DISTANCES)
    for axes in row:
        axes.set_xticks(grown.values("initial"))


def _gains_little(table: ex.Table, last: ex.Table, where: str) -> list[ex.Finding]:
    """More initial classes help, but only a little."""
    few, many = PAPER_RELATIVE
    grown = last.where(strategy="rust")
    gained = ex.compare_values(grown, "relative", "initial", few, many)
    shown = ", ".join(
        f"{ex.format_mean(grown, 'relative', initial=n)} from {n}" for n in grown.values("initial")
    )
    # With fewer classes, nearly all of them would be initial ones.
    enough = last.values("n_classes") == [MEASURED[-1]]
    beneficial = gained.verdict if enough else None
    little = gained.below(LIMITED / 100) if enough else None
    return [
        ex.Finding(
            f"In the paper, RUST is more accurate with {many} initial classes than with {few}.",
            f"{where}: {shown} (%).",
            beneficial,
            printed=PRINTED,
            reason=_explain(table),
        ),
        ex.Finding(
            f"In the paper, this gain is small (at most the printed {LIMITED} points).",
            f"{where}: the gain is {100 * gained.mean:+.1f} points.",
            little,
            printed=PRINTED,
            reason=_explain(table),
        ),
    ]


def _explain(table: ex.Table) -> str:
    """What there is to gain on each data set: how far RUST is below the retrained forest."""
    few, many = PAPER_RELATIVE
    found = "; ".join(
        f"on {data} {100 * (1 - last.mean('relative', strategy='rust', initial=few)):.1f} points "
        f"with {few} and {100 * (1 - last.mean('relative', strategy='rust', initial=many)):.1f} "
        f"with {many} initial classes"
        for data, _, last in protocol.last_rows(table)
    )
    return (
        "It depends on how far RUST is below the retrained forest, in the paper 11.9 and 7.3 "
        f"points: {found}."
    )


def judge(table: ex.Table) -> list[ex.Finding]:
    """Whether there is a gain, and whether it is little."""
    return ex.name_repeated(
        (data, finding)
        for data, end, last in protocol.last_rows(table)
        for finding in _gains_little(table, last, f"On {data}, {end} classes")
    )


EXPERIMENT = protocol.make_relative_experiment(
    name="cvpr2014-fig7",
    title="Fig. 7 of Ristin et al. 2014: initial classes",
    shows="Accuracy and test time of RUST by the number of classes it begins with.",
    runs=runs,
    measure=partial(protocol.measure_in_sweep, keys=KEYS),
    draw=partial(plots.draw_rows, draw_row=_draw_row, n_columns=2, xlabel="initial classes"),
    judge=judge,
    keys=KEYS,
    published=tuple(
        {"data": data, "strategy": "rust", "initial": n, "n_classes": MEASURED[-1], "relative": r}
        for data in protocol.SOURCES
        for n, r in PAPER_RELATIVE.items()
    ),
    size=(7.5, 3.0),
    notes=protocol.NOTES,
)
