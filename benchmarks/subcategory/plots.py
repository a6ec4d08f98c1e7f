"""Pictures of what was measured: ``python -m benchmarks.subcategory.plots FOLDER``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.subcategory.backing_off import THRESHOLDS, curve
from benchmarks.subcategory.bench import Bench, Results, Setting
from benchmarks.subcategory.data import DATA_SETS, TwoLevels, data_sets
from evergrow.drawing import BLACK, BLUE, GREEN, ORANGE, PINK, RED, STYLE
from evergrow.experiments import Table

__all__ = ["main"]

SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)
# Contender, what it is called in the picture, colour and line.
LINES = {
    "full": ("the same samples, all fine-labelled", BLACK, "--"),
    "ridge-h": ("ridge-h", BLUE, "-"),
    "nn-h": ("nn-h", GREEN, "-"),
    "hierarchical": ("hierarchical", ORANGE, "-"),
    "fine-only": ("fine-only", RED, "-"),
}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--only", multiple=True, help="Only these pictures; may be given several times.")
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    help="Runs that were kept; only others are made.",
)
@click.option(
    "--data",
    "chosen",
    multiple=True,
    type=click.Choice([*DATA_SETS]),
    help="Only these data sets; may be given several times.",
)
@click.option("--seeds", default=3, show_default=True)
@click.option("--trees", default=50, show_default=True)
@click.option("--quick", is_flag=True, help="A small generated data set, to try the drawing.")
def main(
    folder: Path,
    only: tuple[str, ...],
    results: Path | None,
    chosen: tuple[str, ...],
    seeds: int,
    trees: int,
    quick: bool,
) -> None:
    """Draw SVG files into FOLDER."""
    bench = Bench(Results(results), range(seeds), trees, quick=quick)
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        for name in only or PICTURES:
            draw, names = PICTURES[name]
            draw(bench, data_sets(chosen or names, quick=quick))
            plt.savefig(folder / f"subcategory_{name}.svg", metadata={"Date": None})
            plt.close()


def labels(bench: Bench, sets: list[TwoLevels]) -> None:
    """Accuracy over the share of the samples whose fine label is told."""
    axes = _panels(len(sets))
    for panel, data in zip(axes, sets, strict=True):
        for contender, (label, colour, line) in LINES.items():
            found = [bench.summary(data, Setting(contender, share)) for share in SHARES]
            _line(panel, [100 * s for s in SHARES], found, label=label, color=colour, ls=line)
        panel.set_xscale("log")
        panel.set_xticks([100 * s for s in SHARES], [f"{100 * s:g}" for s in SHARES])
        panel.minorticks_off()
        panel.set(title=data.name, xlabel="fine-labelled, % of all samples")
    axes[0].set_ylabel("accuracy on fine classes, %")
    _legend(axes[0], len(LINES))


def back_off(bench: Bench, sets: list[TwoLevels]) -> None:
    """Right answers over the share of answers that name a fine class."""
    _, panel = plt.subplots(figsize=(5.4, 3.6))
    for data, colour in zip(sets, (BLUE, GREEN, PINK), strict=False):
        for share, line in ((0.1, "--"), (0.5, "-")):
            found = curve(bench, data, "ridge-h", share)
            x, y = (
                [100 * found.mean(f"{what} at {threshold}") for threshold in THRESHOLDS]
                for what in ("fine", "right")
            )
            label = f"{data.name}, {share:.0%} fine-labelled"
            panel.plot(x, y, line, color=colour, label=label)
    panel.set(xlabel="answers that name a fine class, %", ylabel="right answers, %", xlim=(100, 0))
    panel.legend(fontsize=7)


def _line(panel: Axes, x: list[float], found: list[Table], **look: Any) -> None:
    y = [100 * summary.mean("accuracy") for summary in found]
    spread = [100 * summary.deviation("accuracy") for summary in found]
    panel.errorbar(x, y, spread, marker="o", **look)


def _panels(n_panels: int) -> list[Axes]:
    _, axes = plt.subplots(1, n_panels, figsize=(max(5.4, 3.2 * n_panels), 3.4), squeeze=False)
    return list(axes[0])


def _legend(panel: Axes, n_entries: int) -> None:
    """One legend above all panels."""
    figure = panel.get_figure(root=True)
    assert figure is not None
    handles, names = panel.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=n_entries)


PICTURES: dict[str, tuple[Callable[[Bench, list[TwoLevels]], None], tuple[str, ...]]] = {
    "labels": (labels, ("cifar", "cub", "words")),
    "back_off": (back_off, ("cifar", "cub", "words")),
}


if __name__ == "__main__":
    main()
