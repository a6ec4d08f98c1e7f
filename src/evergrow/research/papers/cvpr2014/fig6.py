"""Fig. 6: the share of the nodes that RTST and RUST change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evergrow.research.experiments.contrasts import FEW_SEEDS_NOISE, combined, contrast
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.cvpr2014.claims import ANYTHING, gain, plus_minus
from evergrow.research.papers.cvpr2014.curves import STYLES, legend_above, panels, plot_curve
from evergrow.research.papers.cvpr2014.data import (
    DATA_NAMES,
    NOTES,
    SOURCES,
    data_names,
    initials,
    last_class,
)
from evergrow.research.papers.cvpr2014.growing import (
    BASELINE,
    MEASURES,
    baseline_run,
    measure_in_sweep,
    relative_to_baseline,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

KEYS = ("data", "strategy", "share", "seed", "n_classes")
INITIAL = 3
END, QUICK_END = 50, 20
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
CHANGING = ("rtst", "rust")
# How near to the retrained forest RTST must end, as a share of its accuracy.
CONVERGED = 0.98


def runs(lab: Lab) -> list[Run]:
    """One run per data set, seed, strategy and share; retraining at every class; IGT."""
    found: list[Run] = []
    for name in data_names(lab, "features"):
        end = last_class(lab, name, lab.scaled(END, QUICK_END))
        (initial,) = initials(lab, name, [INITIAL], end)
        for seed in lab.seeds():
            whole = {**baseline_run(name, seed, [end]), "initial": initial}
            found += [whole, {**whole, "strategy": "igt"}]
            found += [
                {
                    **whole,
                    "strategy": strategy,
                    "share": share,
                    "parameters": {"update_fraction": share},
                }
                for strategy in CHANGING
                for share in SHARES
            ]
    return found


def measure(lab: Lab, run: Run) -> list[Row]:
    """Grow to all classes; the baseline trains anew at every class, for its time."""
    ask = "always" if run["strategy"] == BASELINE else "measured"
    return measure_in_sweep(lab, run, KEYS, ask=ask)


def draw(figure: Figure, table: Table) -> None:
    """Accuracy, test time and training time over the share of the nodes."""
    ((accuracy, comparisons, seconds),) = panels(figure, 1, 3)
    for strategy in CHANGING:
        chosen = table.where(strategy=strategy)
        style = STYLES[strategy]
        plot_curve(accuracy, chosen.curve("share", "relative"), style, scale=100)
        plot_curve(comparisons, chosen.curve("share", "comparisons"), style)
        plot_curve(seconds, chosen.curve("share", "seconds"), style)
    baseline = table.where(strategy=BASELINE)
    style = STYLES[BASELINE]
    for axes, level in (
        (accuracy, 100.0),
        (comparisons, baseline.mean("comparisons")),
        (seconds, baseline.mean("seconds")),
    ):
        axes.axhline(level, color=style.colour, linestyle=style.dashes, label=style.label)
        axes.set_xlabel("share of the nodes")
    accuracy.set_ylabel("accuracy, % of retrained")
    comparisons.set_ylabel("distances per tree\nand test image")
    seconds.set(ylabel="training, CPU s", ylim=(0, None))
    legend_above(figure, accuracy)


def judge(table: Table) -> list[Finding]:
    """From IGT at 0 towards the baseline at 1, which RUST does not reach."""
    found: list[Finding] = []
    for data in table.values("data"):
        chosen = table.where(data=data)
        where = f"On {DATA_NAMES[data]}, {INITIAL} to {max(chosen.values('n_classes'))} classes"
        found += [
            _as_igt(chosen, where),
            _rising(chosen, where),
            _ends(chosen, where),
            _cheaper(chosen, where),
        ]
    return found


def _as_igt(table: Table, where: str) -> Finding:
    igt = [*table.where(strategy="igt").column("accuracy")]
    same = all(
        [*table.where(strategy=strategy, share=0.0).column("accuracy")] == igt
        for strategy in CHANGING
    )
    return Finding(
        "In the paper RTST and RUST are IGT when they change no node.",
        f"{where} all three have {'the same' if same else 'different'} accuracies, "
        f"{plus_minus(table, 'relative', strategy='igt')} % of the retrained one with IGT.",
        same,
    )


def _rising(table: Table, where: str) -> Finding:
    verdicts = [
        gain(table.where(strategy=s), column, "share", 0.0, 1.0, few_seeds_noise=noise).verdict
        for s in CHANGING
        for column, noise in (("relative", FEW_SEEDS_NOISE), ("seconds", ANYTHING))
    ]
    shown = "; ".join(
        f"{STYLES[s].label} "
        + ", ".join(f"{plus_minus(table, 'relative', strategy=s, share=p)} at {p}" for p in SHARES)
        for s in CHANGING
    )
    return Finding(
        "In the paper changing more nodes is more accurate and takes longer.",
        f"{where}, in % of the retrained accuracy: {shown}.",
        combined(verdicts),
    )


def _ends(table: Table, where: str) -> Finding:
    whole = table.where(share=1.0)
    rtst, rust = (whole.mean("relative", strategy=s) for s in CHANGING)
    from_retrained = contrast(
        table, "relative", {"strategy": "rtst", "share": 1.0}, {"strategy": BASELINE}
    )
    below = gain(whole, "relative", "strategy", "rust", "rtst").verdict
    return Finding(
        "In the paper RTST comes to the retrained forest when it changes all nodes, slightly below "
        "for the features' scaling, and RUST stays below RTST; at most "
        f"{100 * (1 - CONVERGED):.0f} points below count as that.",
        f"{where} RTST ends at {100 * rtst:.1f} %, RUST at {100 * rust:.1f} %.",
        combined([from_retrained.above(CONVERGED - 1), below]),
    )


def _cheaper(table: Table, where: str) -> Finding:
    chosen = table.where(share=0.8)
    longer = gain(chosen, "seconds", "strategy", "rust", "rtst", few_seeds_noise=ANYTHING)
    seconds = {s: table.mean("seconds", strategy=s, share=0.8) for s in CHANGING}
    baseline = table.mean("seconds", strategy=BASELINE)
    return Finding(
        "In the paper RUST trains faster than RTST with the same share.",
        f"{where} and a share of 0.8 RUST takes {seconds['rust']:.3g} s of processor time, RTST "
        f"{seconds['rtst']:.3g} s, retraining at every class {baseline:.3g} s.",
        longer.verdict,
    )


EXPERIMENT = Experiment(
    name="cvpr2014-fig6",
    title="Fig. 6 of Ristin et al. 2014: share of the nodes that change",
    shows="Accuracy, test time and training time of RTST and RUST by the share of chosen nodes.",
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
    notes=(
        *NOTES,
        "On features only: visual words take nearly four times as long.",
        "Times are processor seconds of all threads.",
    ),
)
