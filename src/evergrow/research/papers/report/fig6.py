"""Fig. 6 of the report: strategies over the number of classes, on images."""

from __future__ import annotations

import math

from evergrow.research import experiments as ex
from evergrow.research.papers.report import plots, protocol

# Differences of relative accuracy that count as none and as slight, and the ratio of times that
# counts as alike.
SAME, SLIGHTLY, ALIKE = 0.03, 0.05, 1.5
# What is varied: the number of initial classes, and the share of the nodes that RTST chooses.
INITIALS, SHARES = (10,), (0.02,)


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    found = protocol.ncm_runs(context)
    for initial in INITIALS:
        if initial < protocol.n_classes_of(context):
            found += protocol.varied_runs(
                context, "NCM", "initial", [initial], protocol.GROWING, initial=initial
            )
    return found + protocol.varied_runs(context, "NCM", "share", SHARES, ("RTST", "RTSTQ"))


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    data = context.dataset(run["data"]).per_class(500, 100)
    measure_at = [protocol.N_CLASSES] if "varied" in run else None
    return protocol.all_strategies(context, run, data, measure_at)


def judge(table: ex.Table) -> list[ex.Finding]:
    usual = protocol.measured_as_usual(table)
    end = usual.where(n_classes=max(usual.values("n_classes")))
    return [
        _falls(usual),
        _uls(end),
        _igt(table, end),
        _alike(end),
        protocol.judge_test_work(
            end,
            "The report's caption finds forests that grew faster to test than retrained ones.",
            longer=False,
            reason=protocol.explain_share(table, "comparisons", "number of comparisons"),
        ),
    ]


def _falls(table: ex.Table) -> ex.Finding:
    """Whether each strategy is below retraining in the second half of the steps."""
    sizes = sorted(table.values("n_classes"))
    late = sizes[(len(sizes) + 1) // 2 :]

    def compare(name: str) -> ex.Difference:
        def fall(rows: ex.Table) -> float:
            mine = rows.where(strategy=name)
            later = [mine.mean("relative", n_classes=n) for n in late]
            return mine.mean("relative", n_classes=sizes[0]) - sum(later) / len(later)

        return ex.compare_each_seed(table, fall, name=f"fall of {name}")

    changes = {name: compare(name) for name in protocol.STRATEGIES}
    said = ", ".join(f"{name} {-100 * each.mean:+.1f}" for name, each in changes.items())
    return ex.Finding(
        "The report finds that every strategy falls behind retraining as classes are added (by "
        "the mean of the second half of the steps).",
        f"Here relative accuracy changes from {sizes[0]} to {late[0]} and more classes by {said} "
        "points.",
        ex.combine_verdicts(each.verdict for each in changes.values()),
    )


def _times(end: ex.Table) -> dict[str, float]:
    return {
        name: protocol.relative_to_retraining(end, "update_seconds", strategy=name)
        for name in protocol.STRATEGIES
    }


def _compare_times(end: ex.Table, one: str, other: str) -> ex.Difference:
    return ex.compare_ratios(end, "update_seconds", {"strategy": one}, {"strategy": other})


def _uls(end: ex.Table) -> ex.Finding:
    said = ", ".join(
        f"{name} {100 * end.mean('relative', strategy=name):.1f} %" for name in protocol.STRATEGIES
    )
    took = ", ".join(f"{name} {share:.2f}" for name, share in _times(end).items())
    (n_classes,) = end.values("n_classes")
    return ex.Finding(
        "The report finds ULS least accurate and fastest.",
        f"Here accuracy at {n_classes} classes is {said} of retraining's, the last step's "
        f"share of its time {took}.",
        ex.combine_verdicts(
            verdict
            for name in protocol.GROWING
            for verdict in (
                protocol.compare_strategies(end, name, "ULS").verdict,
                _compare_times(end, name, "ULS").verdict,
            )
        ),
    )


def _igt(table: ex.Table, end: ex.Table) -> ex.Finding:
    others = ("RTST", "RTSTQ")
    gaps = [protocol.compare_strategies(end, "IGT", other) for other in others]
    highest = max(gap.mean for gap in gaps)
    times = _times(end)
    decision = ex.combine_verdicts(
        [
            *(gap.below(0.0) for gap in gaps),
            *(gap.above(-SLIGHTLY) for gap in gaps),
            *(_compare_times(end, other, "IGT").verdict for other in others),
        ]
    )
    return ex.Finding(
        "The report finds IGT slightly less accurate than RTST and RTSTQ, and faster (at most "
        f"{100 * SLIGHTLY:.0f} points less accurate).",
        f"Here it is {-100 * highest:.1f} points below the lower of them at "
        f"{times['IGT'] / min(times[name] for name in others):.2f} of the faster one's time.",
        decision,
        reason=_explain_igt(table),
    )


def _explain_igt(table: ex.Table) -> str:
    """How far IGT is below RTST and RTSTQ by the number of initial classes."""
    varied = table.where(varied="initial")
    tried = {protocol.INITIAL: protocol.measured_as_usual(table)}
    tried |= {n: varied.where(value=n) for n in varied.values("value")}
    if len(tried) < 2:
        return ""
    last = max(table.values("n_classes"))
    found = []
    for initial, rows in tried.items():
        at = rows.where(n_classes=last)
        gaps = " and ".join(
            f"{protocol.compare_strategies(at, 'IGT', other).interval} from {other}"
            for other in ("RTST", "RTSTQ")
        )
        found.append(f"with {initial} initial classes {gaps}")
    return (
        "It depends on how many classes the forest begins with, for which the report's text and "
        f"captions on pictures say 4 and 10. IGT is, {'; '.join(found)}."
    )


def _alike(end: ex.Table) -> ex.Finding:
    gap = protocol.compare_strategies(end, "RTST", "RTSTQ")
    longer = _compare_times(end, "RTSTQ", "RTST")
    return ex.Finding(
        f"The report finds that RTST and RTSTQ behave the same (within {100 * SAME:.0f} points "
        f"and {ALIKE} times the time).",
        f"Here they are {100 * abs(gap.mean):.1f} points apart, and RTSTQ takes "
        f"{math.exp(longer.mean):.2f} times as long.",
        ex.combine_verdicts([gap.within(SAME), longer.within(math.log(ALIKE))]),
    )


EXPERIMENT = protocol.make_experiment(
    name="report-fig6",
    title="Report, fig. 6: NCM forests that grow, on pictures",
    shows="accuracy relative to retraining, test time and training time from 4 classes to 20",
    sources=protocol.WORDS,
    measure=measure,
    judge=judge,
    runs=runs,
    draw=plots.draw_over_classes,
    notes=(
        "The report uses 20 classes of ILSVRC 2010, as counts of 1000 SIFT words. Here each seed "
        "chooses 20 classes of CIFAR-100, as square roots of counts of 1000 words of small "
        "patches. Without that file, and in quick runs, the data are a generated mixture.",
        "500 training and 100 test samples per class, as in the report; 50 trees (10 in a quick "
        "run) and leaves of at least 5 samples, which it does not name. Another number of initial "
        "classes and another share of the nodes that RTST chooses are measured at the last step.",
    ),
)
