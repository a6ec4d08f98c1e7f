"""Fig. 6 of the report: strategies over the number of classes, on pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evergrow.research.experiments.contrasts import Contrast, combined, contrast
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.report import growing, pictures

__all__ = ["EXPERIMENT"]

# What still counts as the same accuracy, in shares of retraining's, as slightly less, and how many
# times as long as the same time.
SAME, SLIGHTLY, ALIKE = 0.03, 0.05, 1.5


def _runs(lab: Lab) -> list[dict[str, Any]]:
    return [growing.run_of(lab, "NCM", seed) for seed in lab.seeds()]


def _measure(lab: Lab, run: Run) -> Sequence[Row]:
    data = lab.dataset(run["data"]).per_class(500, 100)
    return growing.all_strategies(lab, run, data)


def _judge(table: Table) -> list[Finding]:
    sizes = sorted(table.values("n_classes"))
    end = table.where(n_classes=sizes[-1])
    relative = {name: end.mean("relative", strategy=name) for name in growing.STRATEGIES}
    times = {
        name: growing.shared(end, "update_seconds", strategy=name) for name in growing.STRATEGIES
    }
    said = ", ".join(f"{name} {100 * relative[name]:.1f} %" for name in growing.STRATEGIES)
    took = ", ".join(f"{name} {times[name]:.2f}" for name in growing.STRATEGIES)
    retrained = (relative["RTST"], relative["RTSTQ"])
    faster = times["IGT"] < min(times["RTST"], times["RTSTQ"])
    igt = [_beside(end, "IGT", other) for other in ("RTST", "RTSTQ")]
    alike = _beside(end, "RTST", "RTSTQ").within(SAME)
    return [
        _falls(table, sizes),
        Finding(
            "The report finds ULS least accurate and fastest.",
            f"Here accuracy at {sizes[-1]} classes is {said} of retraining's, the last step's "
            f"share of its time {took}.",
            combined(
                [
                    *(_beside(end, name, "ULS").verdict for name in growing.GROWING),
                    min(times, key=lambda n: times[n]) == "ULS",
                ]
            ),
        ),
        Finding(
            "The report finds IGT slightly less accurate than RTST and RTSTQ, and faster; up to "
            f"{100 * SLIGHTLY:.0f} points count as slightly.",
            f"Here it is {100 * (min(retrained) - relative['IGT']):.1f} points below the lower of "
            f"them at {times['IGT'] / min(times['RTST'], times['RTSTQ']):.2f} of the faster one's "
            "time.",
            combined(
                [
                    *(each.below(0.0) for each in igt),
                    *(each.above(-SLIGHTLY) for each in igt),
                    faster,
                ]
            ),
        ),
        Finding(
            f"The report finds RTST and RTSTQ alike in everything; {100 * SAME:.0f} points and "
            f"{ALIKE} times the time count as alike.",
            f"Here they are {100 * abs(retrained[0] - retrained[1]):.1f} points apart, and RTSTQ "
            f"takes {times['RTSTQ'] / times['RTST']:.2f} times as long.",
            combined([alike, 1 / ALIKE <= times["RTSTQ"] / times["RTST"] <= ALIKE]),
        ),
        growing.test_work(
            end,
            "The report's caption finds forests that grew faster to test than retrained ones.",
            longer=False,
        ),
    ]


def _beside(end: Table, one: str, other: str) -> Contrast:
    return contrast(end, "relative", {"strategy": one}, {"strategy": other})


def _falls(table: Table, sizes: Sequence[int]) -> Finding:
    """Whether each strategy ends further below retraining than it was after the first step."""
    second, last = sizes[min(1, len(sizes) - 1)], sizes[-1]
    changes = {
        name: contrast(
            table.where(strategy=name), "relative", {"n_classes": second}, {"n_classes": last}
        )
        for name in growing.STRATEGIES
    }
    said = ", ".join(f"{name} {-100 * fall.difference:+.1f}" for name, fall in changes.items())
    return Finding(
        "The report finds that every strategy falls behind retraining as classes are added.",
        f"Here relative accuracy changes from {second} to {last} classes by {said} points.",
        combined(fall.verdict for fall in changes.values()) if last > second else None,
    )


EXPERIMENT = Experiment(
    name="report-fig6",
    title="Report, fig. 6: NCM forests that grow, on pictures",
    shows="accuracy relative to retraining, test time and training time from 4 classes to 20",
    sources=growing.WORDS,
    runs=_runs,
    measure=_measure,
    draw=pictures.draw_over_classes,
    judge=_judge,
    keys=growing.KEYS,
    exact=growing.EXACT,
    timed=growing.TIMED,
    notes=(
        "The report takes 20 classes of ILSVRC 2010 as counts of 1000 SIFT words. Here they are "
        "20 classes of CIFAR-100, chosen anew for each seed, as square roots of counts of 1000 "
        "words of small patches; without that file, and in quick runs, a generated mixture.",
        "500 training and 100 test samples per class, as in the report; 50 trees (10 in a quick "
        "run) and leaves of at least 5 samples, which it does not name.",
    ),
)
