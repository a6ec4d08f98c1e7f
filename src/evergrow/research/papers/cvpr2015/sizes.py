"""Whether the paper's number of trees, subsets and samples would change the close contrasts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015 import claims, evaluation
from evergrow.research.papers.cvpr2015.data import make_experiment, notes, settings, sources

N_TREES, N_SUBSETS, ALL = 50, 1000, 500
USUAL = "as in the tables"
SIZES = (USUAL, f"{N_TREES} trees", f"{N_SUBSETS} subsets", "all samples")
# Two methods, and whether all samples have fine labels.
CONTRASTS: dict[str, tuple[str, str]] = {
    "RNCMF - NCMF": ("regularised", "plain"),
    "NN-H - H": ("nn-h", "hierarchical"),
    "H - fine only": ("hierarchical", "fine-only"),
}
# Trained where every sample has a fine label.
OF_ALL = ("plain", "regularised")
OF_HALF = ("fine-only", "hierarchical", "nn-h")


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    return [_sized(context, run) for run in settings(context, size=SIZES)]


def _sized(context: ex.ExperimentContext, run: ex.Run) -> dict[str, Any]:
    changed: dict[str, Any] = {
        SIZES[1]: {"trees": context.scaled(N_TREES, 20)},
        SIZES[3]: {} if run["n_train"] is None else {"n_train": ALL},
    }
    return {**run, **changed.get(run["size"], {})}


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    subsets = {"n_subsets": context.scaled(N_SUBSETS, 300)} if run["size"] == SIZES[2] else {}

    def entries(names: tuple[str, ...]) -> list[evaluation.Entry]:
        # The plain forest has one subset.
        return [(name, {"method": name}, {} if name == "plain" else subsets) for name in names]

    return [
        *evaluation.compare(context, run, entries(OF_ALL), fine=1.0, coarse=0.0),
        *evaluation.compare(context, run, entries(OF_HALF)),
    ]


def _contrast(table: ex.Table, name: str) -> ex.Difference:
    one, other = CONTRASTS[name]
    return ex.compare_means(table, "accuracy", {"method": one}, {"method": other})


def draw(figure: ex.Figure, table: ex.Table) -> None:
    names = table.values("data")
    panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
    for panel, data in zip(panels, names, strict=True):
        for place, name in enumerate(CONTRASTS):
            found = [_contrast(table.where(data=data, size=size), name) for size in SIZES]
            panel.errorbar(
                np.arange(len(SIZES)) + 0.15 * (place - 1),
                [100 * each.mean for each in found],
                [100 * each.noise for each in found],
                ls="",
                marker=ex.MARKERS[place],
                color=ex.COLOURS[place],
                label=name,
            )
        panel.axhline(0.0, color=ex.GREY, lw=0.8, zorder=0)
        panel.set_xticks(range(len(SIZES)), SIZES, fontsize=7)
        panel.set_title(data)
    panels[0].set_ylabel("difference of accuracy, points")
    ex.add_legend(figure, panels[0], columns=len(CONTRASTS))


def summarize(table: ex.Table) -> str:
    lines = [
        f"| data | size | {' | '.join(CONTRASTS)} |",
        "|---|---" + "|---" * len(CONTRASTS) + "|",
    ]
    for data in table.values("data"):
        for size in SIZES:
            mine = table.where(data=data, size=size)
            cells = " | ".join(_contrast(mine, name).interval for name in CONTRASTS)
            lines.append(f"| {data} | {size} | {cells} |")
    return "\n".join(lines)


def _look(name: str) -> Callable[[ex.Table], ex.Seen]:
    """Whether the first method of a contrast is above the second at each of the paper's sizes."""

    def look(table: ex.Table) -> ex.Seen:
        found = {size: _contrast(table.where(size=size), name) for size in SIZES}
        text = ", ".join(
            f"{ex.say_signed(100 * each.mean)} ({size})" for size, each in found.items()
        )
        mean = ex.compare_each_seed(
            table,
            lambda rows: float(
                np.mean([_contrast(rows.where(size=size), name).mean for size in SIZES[1:]])
            ),
            name=f"{name}, mean of the three larger sizes",
        )
        return f"{text} points", mean.verdict

    return look


def _why(name: str) -> Callable[[ex.Table], str]:
    def reason(table: ex.Table) -> str:
        parts = ", ".join(
            f"{_contrast(table.where(size=size), name).interval} with {size}" for size in SIZES[1:]
        )
        usual = _contrast(table.where(size=USUAL), name).interval
        return f"No size that we tried changes the verdict: {usual} {USUAL}, {parts}."

    return reason


CLAIMS: tuple[ex.Claim, ...] = (
    ex.Claim(
        "The regularised forest is above the plain one (mean over the paper's number of trees, of "
        "subsets and all samples).",
        _look("RNCMF - NCMF"),
        printed="19.01 against 17.58 %",
        reason=claims.named(_why("RNCMF - NCMF")),
    ),
    ex.Claim(
        "NN-H is above H (mean over the same).",
        _look("NN-H - H"),
        printed="18.46 against 18.35 %",
        reason=claims.named(_why("NN-H - H")),
    ),
    ex.Claim(
        "H is above the baseline (mean over the same).",
        _look("H - fine only"),
        printed="18.35 against 16.96 %",
        reason=claims.named(_why("H - fine only")),
    ),
)

EXPERIMENT = make_experiment(
    name="cvpr2015-sizes",
    title="The paper's number of trees, subsets and samples (CVPR 2015)",
    shows="Close contrasts of tables 1 and 2 with 50 trees, 1000 subsets, and all samples.",
    sources=sources("features", "words"),
    measure=measure,
    draw=draw,
    runs=runs,
    judge=partial(ex.findings_by_data, claims=CLAIMS),
    summarize=summarize,
    keys=("data", "size", "method", "seed"),
    exact=("accuracy", "coarse_accuracy", "comparisons"),
    size=(10.0, 3.4),
    notes=(
        *notes("features", "words", scored="both", more_seeds=False),
        "Each run has one size of the paper, and the others as in the tables: 50 trees instead "
        "of 20, 1000 subsets per node instead of 100, or 500 training samples per class instead "
        "of 200 (features) and 150 (words). NCMF and RNCMF get the fine labels of all "
        "samples, and the other methods those of half. No metric is used.",
    ),
)
