"""Fig. 6 of the report: strategies over the number of classes, on images."""

from __future__ import annotations

from collections.abc import Sequence

from evergrow.research import experiments as ex
from evergrow.research.papers.report import plots, protocol

# Differences of relative accuracy that count as none and as slight, and the ratio of times that
# counts as alike.
SAME, SLIGHTLY, ALIKE = 0.03, 0.05, 1.5


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    data = context.dataset(run["data"]).per_class(500, 100)
    return protocol.all_strategies(context, run, data)


def judge(table: ex.Table) -> list[ex.Finding]:
    sizes = sorted(table.values("n_classes"))
    end = table.where(n_classes=sizes[-1])
    relative = {name: end.mean("relative", strategy=name) for name in protocol.STRATEGIES}
    times = {
        name: protocol.relative_to_retraining(end, "update_seconds", strategy=name)
        for name in protocol.STRATEGIES
    }
    said = ", ".join(f"{name} {100 * relative[name]:.1f} %" for name in protocol.STRATEGIES)
    took = ", ".join(f"{name} {times[name]:.2f}" for name in protocol.STRATEGIES)
    retrained = (relative["RTST"], relative["RTSTQ"])
    faster = times["IGT"] < min(times["RTST"], times["RTSTQ"])
    igt = [protocol.compare_strategies(end, "IGT", other) for other in ("RTST", "RTSTQ")]
    alike = protocol.compare_strategies(end, "RTST", "RTSTQ").within(SAME)
    return [
        _falls(table, sizes),
        ex.Finding(
            "The report finds ULS least accurate and fastest.",
            f"Here accuracy at {sizes[-1]} classes is {said} of retraining's, the last step's "
            f"share of its time {took}.",
            ex.combine_verdicts(
                [
                    *(
                        protocol.compare_strategies(end, name, "ULS").verdict
                        for name in protocol.GROWING
                    ),
                    min(times, key=lambda n: times[n]) == "ULS",
                ]
            ),
        ),
        ex.Finding(
            "The report finds IGT slightly less accurate than RTST and RTSTQ, and faster; up to "
            f"{100 * SLIGHTLY:.0f} points count as slightly.",
            f"Here it is {100 * (min(retrained) - relative['IGT']):.1f} points below the lower of "
            f"them at {times['IGT'] / min(times['RTST'], times['RTSTQ']):.2f} of the faster one's "
            "time.",
            ex.combine_verdicts(
                [
                    *(each.below(0.0) for each in igt),
                    *(each.above(-SLIGHTLY) for each in igt),
                    faster,
                ]
            ),
        ),
        ex.Finding(
            f"The report finds RTST and RTSTQ alike in everything; {100 * SAME:.0f} points and "
            f"{ALIKE} times the time count as alike.",
            f"Here they are {100 * abs(retrained[0] - retrained[1]):.1f} points apart, and RTSTQ "
            f"takes {times['RTSTQ'] / times['RTST']:.2f} times as long.",
            ex.combine_verdicts([alike, 1 / ALIKE <= times["RTSTQ"] / times["RTST"] <= ALIKE]),
        ),
        protocol.judge_test_work(
            end,
            "The report's caption finds forests that grew faster to test than retrained ones.",
            longer=False,
        ),
    ]


def _falls(table: ex.Table, sizes: Sequence[int]) -> ex.Finding:
    """Whether each strategy falls further below retraining after the first step."""
    second, last = sizes[min(1, len(sizes) - 1)], sizes[-1]
    changes = {
        name: ex.compare_means(
            table.where(strategy=name), "relative", {"n_classes": second}, {"n_classes": last}
        )
        for name in protocol.STRATEGIES
    }
    said = ", ".join(f"{name} {-100 * fall.mean:+.1f}" for name, fall in changes.items())
    return ex.Finding(
        "The report finds that every strategy falls behind retraining as classes are added.",
        f"Here relative accuracy changes from {second} to {last} classes by {said} points.",
        ex.combine_verdicts(fall.verdict for fall in changes.values()) if last > second else None,
    )


EXPERIMENT = protocol.make_experiment(
    name="report-fig6",
    title="Report, fig. 6: NCM forests that grow, on pictures",
    shows="accuracy relative to retraining, test time and training time from 4 classes to 20",
    sources=protocol.WORDS,
    measure=measure,
    judge=judge,
    runs=protocol.ncm_runs,
    draw=plots.draw_over_classes,
    notes=(
        "The report takes 20 classes of ILSVRC 2010 as counts of 1000 SIFT words. Here they are "
        "20 classes of CIFAR-100, chosen anew for each seed, as square roots of counts of 1000 "
        "words of small patches; without that file, and in quick runs, a generated mixture.",
        "500 training and 100 test samples per class, as in the report; 50 trees (10 in a quick "
        "run) and leaves of at least 5 samples, which it does not name.",
    ),
)
