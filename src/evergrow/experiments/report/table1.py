"""Table 1 of the report: spirals from 4, 6 and 10 initial classes to 20, two at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evergrow.drawing import BLACK
from evergrow.experiments.experiment import Experiment, Finding, Run
from evergrow.experiments.lab import Lab
from evergrow.experiments.report import growing, pictures
from evergrow.experiments.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "MEASURED_AT", "PRINTED"]

MEASURED_AT = (12, 16, 20)
FORESTS = ("NCM", "SVM")
# How far below a printed number ours may be and still agree.
SHORT = 0.03

# Accuracy of forests trained anew at 12, 16 and 20 classes.
BASELINES = {"SVM": (0.97, 0.96, 0.96), "NCM": (0.95, 0.95, 0.98)}

# Relative accuracy in % at 12, 16 and 20 classes, by kind of forest and initial classes.
PRINTED: dict[tuple[str, int], dict[str, tuple[float, float, float]]] = {
    ("NCM", 4): {
        "ULS": (61.2, 50.3, 42.4),
        "IGT": (94.3, 92.3, 92.9),
        "RTST": (98.8, 94.6, 94.9),
        "RTSTQ": (96.7, 97.0, 97.0),
    },
    ("NCM", 6): {
        "ULS": (75.5, 70.2, 57.2),
        "IGT": (102.6, 96.7, 93.6),
        "RTST": (99.6, 97.5, 95.7),
        "RTSTQ": (102.0, 96.5, 96.3),
    },
    ("NCM", 10): {
        "ULS": (94.7, 79.9, 69.7),
        "IGT": (101.6, 100.3, 97.0),
        "RTST": (98.5, 100.3, 97.7),
        "RTSTQ": (102.9, 101.4, 97.7),
    },
    ("SVM", 4): {
        "ULS": (39.1, 32.4, 26.7),
        "IGT": (98.9, 95.6, 97.4),
        "RTST": (92.3, 94.1, 98.1),
        "RTSTQ": (95.9, 97.2, 99.3),
    },
    ("SVM", 6): {
        "ULS": (60.4, 49.0, 40.1),
        "IGT": (96.4, 96.1, 97.9),
        "RTST": (100.3, 100.2, 99.0),
        "RTSTQ": (98.5, 98.8, 99.4),
    },
    ("SVM", 10): {
        "ULS": (85.9, 71.3, 58.7),
        "IGT": (92.5, 95.4, 97.9),
        "RTST": (100.1, 100.3, 100.1),
        "RTSTQ": (100.0, 100.3, 99.8),
    },
}


def _published() -> tuple[Row, ...]:
    rows: list[Row] = []
    for forest, accuracies in BASELINES.items():
        for n_classes, accuracy in zip(MEASURED_AT, accuracies, strict=True):
            where = {"forest": forest, "strategy": growing.RETRAINED, "n_classes": n_classes}
            rows.append({**where, "accuracy": accuracy})
    for (forest, initial), strategies in PRINTED.items():
        for name, relative in strategies.items():
            where = {"forest": forest, "initial": initial, "strategy": name}
            rows += [
                {**where, "n_classes": n_classes, "relative": percent / 100}
                for n_classes, percent in zip(MEASURED_AT, relative, strict=True)
            ]
    return tuple(rows)


PUBLISHED = _published()


def _runs(lab: Lab) -> list[dict[str, Any]]:
    # A quick run leaves out the middle, which tells least.
    first, *others = lab.scaled((4, 6, 10), (4, 10))
    n_classes = len(lab.dataset(lab.names[0]).classes)
    initials = [first, *(n for n in others if n < n_classes)]
    return [
        growing.run_of(lab, forest, seed, initial=initial)
        for seed in lab.seeds()
        for forest in FORESTS
        for initial in initials
    ]


def _measure(lab: Lab, run: Run) -> Sequence[Row]:
    return growing.all_strategies(lab, run, growing.spirals_of(lab, run), MEASURED_AT)


def _draw(figure: Figure, table: Table) -> None:
    initials = table.values("initial")
    printed = Table(PUBLISHED)
    rows = figure.subplots(len(FORESTS), len(initials), sharex=True, sharey=True, squeeze=False)
    for forest, panels in zip(FORESTS, rows, strict=True):
        for initial, axes in zip(initials, panels, strict=True):
            for name in growing.STRATEGIES:
                colour, marker = pictures.LOOKS[name]
                where = {"forest": forest, "initial": initial, "strategy": name}
                look = {"color": colour, "marker": marker, "label": name}
                pictures.draw_curve(axes, table.where(**where), "relative", 100, **look)
                paper = printed.where(**where).curve("n_classes", "relative")
                look = {"color": colour, "marker": marker, "markerfacecolor": "none"}
                axes.plot(paper.x, 100 * paper.mean, linestyle=":", linewidth=1, **look)
            axes.set_title(f"{forest} forest, {initial} initial classes")
            axes.set_xticks(sorted(table.values("n_classes")))
    for axes in rows[-1]:
        axes.set_xlabel("classes")
    for axes in rows[:, 0]:
        axes.set_ylabel("accuracy, % of retraining")
    rows[0][0].set_ylim(bottom=0)
    handles, labels = rows[0][0].get_legend_handles_labels()
    paper_line = rows[0][0].plot([], [], "o:", color=BLACK, markerfacecolor="none", linewidth=1)
    figure.legend([*handles, *paper_line], [*labels, "paper"], loc="outside upper center", ncols=5)


def _judge(table: Table) -> list[Finding]:
    return [_rtst_beats_uls(table), *_initial_classes(table), *_beside_the_report(table)]


def _rtst_beats_uls(table: Table) -> Finding:
    gaps = []
    for forest in FORESTS:
        for initial in table.values("initial"):
            for n_classes in table.values("n_classes"):
                at = table.where(forest=forest, initial=initial, n_classes=n_classes)
                uls = at.mean("relative", strategy="ULS")
                gaps += [at.mean("relative", strategy=name) - uls for name in ("RTST", "RTSTQ")]
    # A stream that begins where it ends has updated nothing.
    least = float(np.nanmin(gaps))
    return Finding(
        "The report finds RTST above ULS for both forests in every cell.",
        f"Here the smallest lead is {100 * least:.1f} points of relative accuracy.",
        least > 0,
    )


def _initial_classes(table: Table) -> list[Finding]:
    end = table.where(n_classes=max(table.values("n_classes")))
    initials = sorted(table.values("initial"))
    rising, spreads = True, []
    said = []
    for forest in FORESTS:
        uls = [end.mean("relative", forest=forest, strategy="ULS", initial=n) for n in initials]
        rising &= bool(np.all(np.diff(uls) > 0))
        said.append(f"{forest} " + " / ".join(f"{100 * value:.0f}" for value in uls))
        for name in growing.GROWING:
            where = {"forest": forest, "strategy": name}
            each = [end.mean("relative", initial=n, **where) for n in initials]
            spreads.append(max(each) - min(each))
    counts = " / ".join(map(str, initials))
    return [
        Finding(
            "The report finds that ULS gains from more initial classes.",
            f"Here it ends at {', '.join(said)} % of retraining from {counts} initial classes.",
            rising,
        ),
        Finding(
            "The report finds the other strategies insensitive to the number of initial classes; "
            "in its own table they differ by up to 4.8 points at 20.",
            f"Here they differ by at most {100 * max(spreads):.1f} points.",
            max(spreads) <= 0.048,
        ),
    ]


def _beside_the_report(table: Table) -> list[Finding]:
    gaps: dict[str, dict[str, float]] = {"ULS": {}, "the others": {}}
    for row in PUBLISHED:
        if "relative" not in row:
            continue
        where = {key: row[key] for key in ("forest", "initial", "strategy", "n_classes")}
        gap = table.mean("relative", **where) - row["relative"]
        if np.isfinite(gap):
            cell = (
                f"{row['forest']} {row['strategy']} from {row['initial']} to {row['n_classes']} "
                f"classes, printed {100 * row['relative']:.1f} %"
            )
            gaps["ULS" if row["strategy"] == "ULS" else "the others"][cell] = gap
    return [_holds(group, found) for group, found in gaps.items()]


def _holds(group: str, gaps: dict[str, float]) -> Finding:
    claim = f"The report's table holds for {group}."
    if not gaps:
        return Finding(claim, "These data do not reach its numbers of classes.", None)
    lowest = min(gaps, key=lambda cell: gaps[cell])
    return Finding(
        claim,
        f"Here relative accuracy is {100 * gaps[lowest]:+.1f} ({lowest}) to "
        f"{100 * max(gaps.values()):+.1f} points from the printed ones, "
        f"{100 * np.mean([*gaps.values()]):+.1f} on average.",
        gaps[lowest] >= -SHORT,
    )


EXPERIMENT = Experiment(
    name="report-table1",
    title="Report, table 1: spirals from 4, 6 and 10 initial classes",
    shows="accuracy relative to retraining at 12, 16 and 20 classes, NCM and SVM forests",
    sources=growing.SPIRALS,
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=growing.KEYS,
    exact=growing.EXACT,
    timed=growing.TIMED,
    published=PUBLISHED,
    size=(9.0, 5.2),
    notes=(
        "A number counts as holding when ours is at most 3 points below it: the report is one run "
        "of other code on spirals whose constants it does not print.",
        "The report names no number of trees and no smallest leaf: here 50 trees (10 in a quick "
        "run) and 5 samples; with 10 samples ULS from 6 to 16 classes falls 4 points short. "
        "Spirals are drawn anew for each seed.",
        "ULS depends on the number of trees: 20 were tried first, and there NCM forests with ULS "
        "from 6 to 16 classes fell 4.8 points short of the report, with 50 they are 0.4 short. "
        "Seeds differ by about 3 points in these cells, so a verdict near the limit says little.",
    ),
)
