"""Pictures of the trade-offs: ``python -m benchmarks.growing.plots FOLDER [--quick]``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.data import image_features, mixture
from benchmarks.growing.protocol import (
    ORDER_SEEDS,
    Outcome,
    Schedule,
    Stage,
    Stream,
    grow,
    mean_outcome,
    retrain,
    stream_of,
)
from benchmarks.growing.strategies import RECOMMENDED
from benchmarks.measure import show_table
from evergrow import IGT, RTST, RUST, ULS
from evergrow.drawing import BLACK, BLUE, GREEN, ORANGE, PINK, RED, STYLE

__all__ = ["main"]

N_ORDERS = 2

STRATEGIES: dict[str, tuple[dict[str, Any], str]] = {
    "ULS": ({"update": ULS()}, ORANGE),
    "IGT": ({"update": IGT()}, GREEN),
    "RUST": ({"update": RUST()}, BLUE),
    "RTST": ({"update": RTST()}, RED),
    "recommended": (RECOMMENDED, PINK),
}
BY_SIZE = (ORANGE, GREEN, BLUE, RED)

Curve = dict[int, Outcome]


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--quick", is_flag=True, help="Small generated data, to try the drawing.")
def main(folder: Path, quick: bool) -> None:
    """Measure and draw four SVG files into FOLDER."""
    split = mixture(4000, 64, 40, n_test=2000) if quick else image_features()
    streams = [stream_of(split, seed, 50) for seed in ORDER_SEEDS[:N_ORDERS]]
    if quick:
        streams = [stream_of(split, ORDER_SEEDS[0], 40)]
    folder.mkdir(parents=True, exist_ok=True)
    baseline = _mean_curve([retrain(stream, Schedule(3)) for stream in streams])
    with plt.rc_context(STYLE):
        by_strategy(folder, streams, baseline)
        by_fraction(folder, streams, baseline)
        by_initial(folder, streams, baseline)
        by_chunk(folder, streams, baseline)


def by_strategy(folder: Path, streams: list[Stream], baseline: Curve) -> None:
    """Accuracy, training time and test-time comparisons over the number of classes (fig. 5)."""
    curves = {"retrained": baseline}
    for name, (parameters, _) in STRATEGIES.items():
        curves[name] = _mean_curve([grow(stream, Schedule(3), **parameters) for stream in streams])
    colours = {"retrained": BLACK, **{name: colour for name, (_, colour) in STRATEGIES.items()}}
    accuracy, seconds, comparisons = _panels(3)
    for name, curve in curves.items():
        n = list(curve)
        dashes = "--" if name == "retrained" else "-"
        style: dict[str, Any] = {"color": colours[name], "label": name, "ls": dashes}
        relative = [100 * curve[k].accuracy / baseline[k].accuracy for k in n]
        accuracy.plot(n, relative, **style)
        seconds.plot(n, [curve[k].seconds for k in n], **style)
        comparisons.plot(n, [curve[k].comparisons for k in n], **style)
    # ULS leaves the picture, so that the others can be told apart.
    accuracy.set(title="accuracy, % of retrained", xlabel="classes", ylim=(80, 101))
    seconds.set(title="training so far, CPU seconds", xlabel="classes", yscale="log")
    comparisons.set(title="distances per tree, test sample", xlabel="classes", ylim=(0, None))
    _legend(accuracy, len(curves))
    _save(folder, "growing_strategies")
    _show("strategies", {(name, max(curve)): curve[max(curve)] for name, curve in curves.items()})


def by_fraction(folder: Path, streams: list[Stream], baseline: Curve) -> None:
    """The same over the share of the nodes that may change (fig. 6)."""
    fractions = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    end = max(baseline)
    axes = _panels(3)
    shown: dict[tuple[object, ...], Outcome] = {}
    for name in ("RUST", "RTST"):
        parameters, colour = STRATEGIES[name]
        outcomes = []
        for fraction in fractions:
            curve = _mean_curve(
                [grow(s, Schedule(3), **parameters, update_fraction=fraction) for s in streams],
                at=(end,),
            )
            outcomes.append(curve[end].relative_to(baseline[end]))
            shown[name, fraction] = outcomes[-1]
        values = zip(*((o.accuracy, o.seconds, o.comparisons) for o in outcomes), strict=True)
        for panel, value in zip(axes, values, strict=True):
            panel.plot(fractions, [100 * v for v in value], "o-", color=colour, label=name)
    titles = ("accuracy", "CPU time of training", "distances per test sample")
    for panel, title in zip(axes, titles, strict=True):
        panel.axhline(100, color=BLACK, ls="--", lw=1, label="retrained")
        panel.set(title=title, xlabel="update_fraction")
    axes[0].set_ylabel("% of retrained")
    axes[1].set_ylim(0, None)
    _legend(axes[0], 3)
    _save(folder, "growing_fraction")
    _show(f"update_fraction, {end} classes, relative", shown)


def by_initial(folder: Path, streams: list[Stream], baseline: Curve) -> None:
    """RUST from different numbers of initial classes (fig. 7)."""
    initials = (3, 5, 10, 20)
    at = tuple(n for n in (30, 40, 50) if n in baseline)
    curves = [
        _mean_curve([grow(s, Schedule(initial), update=RUST()) for s in streams], at=at)
        for initial in initials
    ]
    axes = _panels(2)
    places = range(len(initials))
    for n, colour in zip(at, BY_SIZE, strict=False):
        relative = [curve[n].relative_to(baseline[n]) for curve in curves]
        style: dict[str, Any] = {"color": colour, "label": f"at {n} classes", "marker": "o"}
        axes[0].plot(places, [100 * outcome.accuracy for outcome in relative], **style)
        axes[1].plot(places, [100 * outcome.comparisons for outcome in relative], **style)
    for panel, title in zip(axes, ("accuracy", "distances per test sample"), strict=True):
        panel.axhline(100, color=BLACK, ls="--", lw=1, label="retrained")
        panel.set(title=title, xlabel="initial classes")
        panel.set_xticks(places, [str(initial) for initial in initials])
    axes[0].set_ylabel("% of retrained")
    _legend(axes[0], len(at) + 1)
    _save(folder, "growing_initial")
    _show(
        "RUST by initial classes, relative",
        {
            (initial, n): curve[n].relative_to(baseline[n])
            for initial, curve in zip(initials, curves, strict=True)
            for n in at
        },
    )


def by_chunk(folder: Path, streams: list[Stream], baseline: Curve) -> None:
    """RUST from 10 classes on, by the number of classes that come at a time (fig. 9)."""
    end = max(baseline)
    accuracy, seconds, comparisons = _panels(3)
    shown: dict[tuple[object, ...], Outcome] = {}
    for step, colour in zip((1, 5, 10, end - 10), BY_SIZE, strict=True):
        curve = _mean_curve([grow(s, Schedule(10, step), update=RUST()) for s in streams])
        n = list(curve)
        relative = [curve[k].relative_to(baseline[k]) for k in n]
        label = "all at once" if step == end - 10 else f"{step} at a time"
        style: dict[str, Any] = {"color": colour, "label": label, "marker": "o"}
        accuracy.plot(n, [100 * outcome.accuracy for outcome in relative], **style)
        seconds.plot(n, [curve[k].seconds for k in n], **style)
        comparisons.plot(n, [100 * outcome.comparisons for outcome in relative], **style)
        shown[label, end] = relative[-1]
    accuracy.set(title="accuracy, % of retrained", xlabel="classes")
    seconds.set(title="training so far, CPU seconds", xlabel="classes", ylim=(0, None))
    comparisons.set(title="distances per test sample, %", xlabel="classes")
    _legend(accuracy, 4)
    _save(folder, "growing_chunks")
    _show("RUST by chunk, relative (CPU to retraining at every class)", shown)


def _mean_curve(runs: Sequence[Iterator[Stage]], at: Sequence[int] | None = None) -> Curve:
    """Outcomes at some numbers of classes, by default few enough to be measured quickly."""
    curves: dict[int, list[Outcome]] = {}
    for stages in runs:
        for stage in stages:
            wanted = stage.n_classes % 5 == 0 or stage.n_classes == 3
            if stage.n_classes in at if at is not None else wanted:
                curves.setdefault(stage.n_classes, []).append(stage.outcome())
    return {n: mean_outcome(outcomes) for n, outcomes in curves.items()}


def _panels(n_panels: int) -> list[Axes]:
    _, axes = plt.subplots(1, n_panels, figsize=(3.1 * n_panels, 3.0))
    return list(axes)


def _legend(panel: Axes, n_entries: int) -> None:
    """One legend above all panels."""
    figure = panel.get_figure(root=True)
    assert figure is not None
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=n_entries)


def _save(folder: Path, name: str) -> None:
    plt.savefig(folder / f"{name}.svg", metadata={"Date": None})
    plt.close()


def _show(title: str, outcomes: dict[tuple[object, ...], Outcome]) -> None:
    """Print what was drawn, for the text beside the pictures."""
    show_table(
        f"plots: {title}",
        ["", "accuracy", "newest five", "CPU", "comparisons"],
        [
            (", ".join(map(str, key)), o.accuracy, o.newest, o.seconds, o.comparisons)
            for key, o in outcomes.items()
        ],
    )


if __name__ == "__main__":
    main()
