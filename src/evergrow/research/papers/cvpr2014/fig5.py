"""Fig. 5: the update strategies beside retraining, over the number of classes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from evergrow.research.experiments.contrasts import combined, contrast_of
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.cvpr2014.claims import ANYTHING, increasing, plus_minus
from evergrow.research.papers.cvpr2014.curves import (
    STYLES,
    legend_above,
    panels,
    plot_curve,
    plot_paper,
)
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
    STRATEGIES,
    measure_strategy,
    points,
    relative_to_baseline,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

KEYS = ("data", "initial", "strategy", "seed", "n_classes")
EVERY = 10
# Where the paper's own stream begins and ends.
PAPER_INITIAL, PAPER_END = 3, 50
PAPER_RELATIVE = {"uls": 0.267, "igt": 0.807, "rust": 0.881, "rtst": 0.912}
PAPER_IGT_ACCURACY = 0.349
# How near to the paper's a relative accuracy counts as the same; our choice.
NEAR = 0.1
# Test time of ULS beside its first, and how many times more the retrained forest needs than IGT.
KEPT, FEWER = 1.1, 2.5


@dataclass(frozen=True)
class Stretch:
    """From how many classes to how many."""

    initial: int
    end: int


TO_ALL = Stretch(10, 100)
AS_PAPER = Stretch(PAPER_INITIAL, PAPER_END)
# Retraining a hundred times on 1000 features per image would take longer than all the rest.
STRETCHES = {"features": (TO_ALL, AS_PAPER), "words": (AS_PAPER,)}
QUICK_STRETCHES = (Stretch(10, 40), Stretch(PAPER_INITIAL, 30))


def runs(lab: Lab) -> list[Run]:
    """One run per data set, stretch, seed and strategy."""
    found: list[Run] = []
    for name in data_names(lab, *STRETCHES):
        stretches = lab.scaled(STRETCHES[name], QUICK_STRETCHES)
        most = last_class(lab, name, max(stretch.end for stretch in stretches))
        known = initials(lab, name, [stretch.initial for stretch in stretches], most)
        for stretch in stretches:
            if stretch.initial not in known:
                continue
            end = last_class(lab, name, stretch.end)
            place = {**asdict(stretch), "end": end, "at": points(stretch.initial, end, EVERY)}
            found += [
                {"data": name, **place, "strategy": strategy, "seed": seed}
                for seed in lab.seeds()
                for strategy in (BASELINE, *STRATEGIES)
            ]
    return found


def measure(lab: Lab, run: Run) -> list[Row]:
    """Follow the stream with one strategy; the baseline trains anew at every class."""
    return measure_strategy(lab, run, KEYS, ask="always")


def draw(figure: Figure, table: Table) -> None:
    """One row of panels per data set and stretch: accuracy twice, test time, training time."""
    stretches = _stretches(table)
    grid = panels(figure, len(stretches), 4)
    for row, (data, initial) in zip(grid, stretches, strict=True):
        _draw_stretch(row, table.where(data=data, initial=initial))
        row[0].set_title(f"{DATA_NAMES[data]}, {initial} initial classes")
        if initial == PAPER_INITIAL and PAPER_END in _sizes(table, data, initial):
            for strategy, relative in PAPER_RELATIVE.items():
                for axes in row[: 1 if strategy == "uls" else 2]:
                    plot_paper(axes, PAPER_END, 100 * relative, STYLES[strategy])
    for axes in grid[-1]:
        axes.set_xlabel("classes")
    legend_above(figure, grid[0][0], grid[-1][0], columns=5)


def _draw_stretch(row: list[Axes], table: Table) -> None:
    accuracy, upper, comparisons, seconds = row
    for strategy, style in STYLES.items():
        chosen = table.where(strategy=strategy)
        plot_curve(accuracy, chosen.curve("n_classes", "relative"), style, scale=100)
        if strategy != "uls":
            plot_curve(upper, chosen.curve("n_classes", "relative"), style, scale=100)
        plot_curve(comparisons, chosen.curve("n_classes", "comparisons"), style)
        plot_curve(seconds, chosen.curve("n_classes", "seconds"), style)
    accuracy.set(ylabel="accuracy, % of retrained", ylim=(0, 105))
    # Far below the others, ULS would press them together.
    upper.set(ylabel="the same, without ULS")
    comparisons.set(ylabel="distances per tree\nand test image", ylim=(0, None))
    seconds.set(ylabel="training so far, CPU s", yscale="log")


def _stretches(table: Table) -> list[tuple[str, int]]:
    return [*dict.fromkeys((row["data"], row["initial"]) for row in table)]


def _sizes(table: Table, data: str, initial: int) -> list[int]:
    return table.where(data=data, initial=initial).values("n_classes")


def judge(table: Table) -> list[Finding]:
    """The order everywhere; sizes and times where the stream is the paper's."""
    found: list[Finding] = []
    for data, initial in _stretches(table):
        stretch = table.where(data=data, initial=initial)
        end = max(stretch.values("n_classes"))
        last = stretch.where(n_classes=end)
        where = f"{DATA_NAMES[data]}, {initial} to {end} classes"
        found.append(_order(last, where))
        as_paper = (initial, end) == (PAPER_INITIAL, PAPER_END)
        if initial == PAPER_INITIAL:
            levels = _levels(last, where), _test_time(stretch, end, where)
            found += [_only_if(as_paper, finding) for finding in levels]
        found += [_only_if(as_paper, _savings(last, where)), _widening(stretch, end, where)]
    return found


def _only_if(as_paper: bool, finding: Finding) -> Finding:
    """The paper's numbers are of its own stream; on another they decide nothing."""
    return finding if as_paper else replace(finding, agrees=None)


def _order(last: Table, where: str) -> Finding:
    shown = ", ".join(
        f"{STYLES[s].label} {plus_minus(last, 'relative', strategy=s)}" for s in STRATEGIES
    )
    names = (*STRATEGIES, BASELINE)
    return Finding(
        "The paper orders by accuracy: ULS, IGT, RUST, RTST, and the retrained forest best.",
        f"On {where}: {shown} % of the retrained accuracy of "
        f"{plus_minus(last, 'accuracy', strategy=BASELINE)} %.",
        increasing(last, "relative", "strategy", names),
    )


def _levels(last: Table, where: str) -> Finding:
    gaps = {
        s: contrast_of([r - PAPER_RELATIVE[s] for r in last.where(strategy=s).column("relative")])
        for s in STRATEGIES
    }
    shown = ", ".join(f"{STYLES[s].label} {100 * g.difference:+.1f}" for s, g in gaps.items())
    return Finding(
        "The paper keeps 26.7 (ULS), 80.7 (IGT), 88.1 (RUST) and 91.2 % (RTST) of the accuracy at "
        f"50 classes; {100 * NEAR:.0f} points more or less count as the same.",
        f"On {where} the differences in points are {shown}.",
        combined(gap.within(NEAR) for gap in gaps.values()),
    )


def _test_time(stretch: Table, end: int, where: str) -> Finding:
    first, last = (
        {s: stretch.mean("comparisons", strategy=s, n_classes=n) for s in STYLES}
        for n in (stretch.values("n_classes")[0], end)
    )
    constant = last["uls"] / first["uls"]
    saved = last[BASELINE] / last["igt"]
    return Finding(
        "In the paper ULS keeps its test time, and IGT tests three times faster than the "
        f"retrained forest; at most {KEPT} times the first and at least {FEWER} times count.",
        f"On {where} ULS ends at {constant:.2f} times its first test time, IGT needs "
        f"1/{saved:.1f} of the distances of the retrained forest.",
        constant <= KEPT and saved >= FEWER,
    )


def _savings(last: Table, where: str) -> Finding:
    seconds, distances = (
        {s: last.mean(column, strategy=s) for s in STYLES} for column in ("seconds", "n_distances")
    )
    faster = {s: seconds[BASELINE] / seconds[s] for s in ("igt", "rust")}
    fewer = {s: distances[BASELINE] / distances[s] for s in ("igt", "rust")}
    ratio = seconds["rtst"] / seconds["rust"]
    return Finding(
        "The paper trains 25 times faster than retraining with IGT, 5 times with RUST, and twice "
        "as fast with RUST as with RTST; at least three fifths of each are asked for.",
        f"On {where} IGT is {faster['igt']:.1f} times faster ({fewer['igt']:.0f} times fewer "
        f"distances), RUST {faster['rust']:.1f} times ({fewer['rust']:.1f} times fewer), and "
        f"RTST takes {ratio:.1f} times as long as RUST.",
        faster["igt"] >= 15 and faster["rust"] >= 3 and ratio >= 1.2,
    )


def _widening(stretch: Table, end: int, where: str) -> Finding:
    def ratio(n: int, **seed: int) -> float:
        at = stretch.where(n_classes=n, **seed)
        return at.mean("seconds", strategy="rtst") / at.mean("seconds", strategy="rust")

    known = stretch.values("n_classes")
    middle = known[len(known) // 2]
    early, late = ratio(middle), ratio(end)
    widened = [ratio(end, seed=s) - ratio(middle, seed=s) for s in stretch.values("seed")]
    return Finding(
        "In the paper the gap between the training times of RTST and RUST widens with the classes.",
        f"On {where} RTST takes {early:.2f} times as long at {middle} classes and {late:.2f} times "
        f"at {end}.",
        contrast_of(widened, few_seeds_noise=ANYTHING).verdict,
    )


def _published() -> tuple[Row, ...]:
    rows: list[dict[str, Any]] = []
    for data in SOURCES:
        place = {"data": data, "initial": PAPER_INITIAL, "n_classes": PAPER_END}
        rows += [{**place, "strategy": s, "relative": r} for s, r in PAPER_RELATIVE.items()]
        rows.append({**place, "strategy": "igt", "accuracy": PAPER_IGT_ACCURACY})
    return tuple(rows)


EXPERIMENT = Experiment(
    name="cvpr2014-fig5",
    title="Fig. 5 of Ristin et al. 2014: ways to update a forest",
    shows="Accuracy, test time and training time of ULS, IGT, RUST and RTST as classes come.",
    sources=SOURCES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=KEYS,
    exact=MEASURES,
    timed=("seconds",),
    published=_published(),
    complete=relative_to_baseline,
    size=(12.0, 3.0),
    notes=(
        *NOTES,
        "Beside the paper's stream from 3 to 50 classes there is one from 10 to all 100, on "
        "features only.",
        "RTST grows only those chosen subtrees again that new samples reach, which saves time; the "
        "others would gain nothing. Times are processor seconds of all threads.",
    ),
)
