"""Fig. 3 of the report: strategies over the number of classes, on spirals."""

from __future__ import annotations

from evergrow.research import experiments as ex
from evergrow.research.papers.report import plots, protocol

# Relative accuracies that count as slightly and as far below, and the ratio of times that counts
# as alike.
NEAR, FAR, ALIKE = 0.9, 0.7, 1.5
# Largest relative change of the test time of ULS.
KEPT = 0.25


def judge(table: ex.Table) -> list[ex.Finding]:
    sizes = sorted(table.values("n_classes"))
    first, second, last = sizes[0], sizes[1], sizes[-1]
    end = table.where(n_classes=last)
    relative = {name: end.mean("relative", strategy=name) for name in protocol.STRATEGIES}
    lowest = min(protocol.GROWING, key=lambda name: relative[name])
    early = table.mean("relative", strategy="ULS", n_classes=second)
    times = {
        name: protocol.relative_to_retraining(end, "update_seconds", strategy=name)
        for name in protocol.STRATEGIES
    }
    behind = {
        name: ex.compare_means(
            end, "relative", {"strategy": name}, {"strategy": protocol.RETRAINED}
        )
        for name in protocol.STRATEGIES
    }
    uls = table.where(strategy="ULS")
    fell = ex.compare_means(uls, "relative", {"n_classes": second}, {"n_classes": last})
    slowest = max(times, key=lambda name: times[name])
    grown = [times[name] for name in protocol.GROWING]
    return [
        ex.Finding(
            "The report finds IGT, RTST and RTSTQ only slightly below retraining; "
            f"{100 * NEAR:.0f} % of its accuracy count as that.",
            f"Here the lowest of them at {last} classes, {lowest}, has "
            f"{100 * relative[lowest]:.1f} % of retraining's accuracy.",
            ex.combine_verdicts(behind[name].above(NEAR - 1) for name in protocol.GROWING),
        ),
        ex.Finding(
            "The report finds that ULS falls far behind as classes are added; below "
            f"{100 * FAR:.0f} % counts as far.",
            f"Here ULS has {100 * early:.0f} % of retraining's accuracy after the first step and "
            f"{100 * relative['ULS']:.0f} % at {last} classes.",
            ex.combine_verdicts(
                [behind["ULS"].below(FAR - 1), fell.verdict if last > second else None]
            ),
        ),
        ex.Finding(
            "The report finds every strategy faster to train than retraining.",
            f"Here the slowest, {slowest}, takes {times[slowest]:.2f} of the time of retraining "
            f"for the step to {last} classes.",
            times[slowest] < 1,
        ),
        ex.Finding(
            "The report finds little difference in training time between IGT, RTST and RTSTQ; "
            f"up to {ALIKE} times counts as little.",
            "Here that step takes "
            + ", ".join(f"{name} {times[name]:.2f}" for name in protocol.GROWING)
            + " of the time of retraining.",
            max(grown) <= ALIKE * min(grown),
        ),
        _test_work(table, first, last),
    ]


def _test_work(table: ex.Table, first: int, last: int) -> ex.Finding:
    def grew(name: str) -> float:
        chosen = table.where(strategy=name)
        start = chosen.mean("comparisons", n_classes=first)
        return chosen.mean("comparisons", n_classes=last) / start

    uls = grew("ULS")
    others = {name: grew(name) for name in protocol.GROWING}
    said = ", ".join(f"{share:.2f} times with {name}" for name, share in others.items())
    return ex.Finding(
        "The report finds that the test time of ULS hardly changes, here by at most "
        f"{100 * KEPT:.0f} %, while that of the others grows.",
        f"Here a test sample of {last} classes costs {uls:.2f} times the comparisons of one of "
        f"{first} with ULS, {said}.",
        abs(uls - 1) <= KEPT and min(others.values()) > max(uls, 1),
    )


EXPERIMENT = protocol.make_experiment(
    name="report-fig3",
    title="Report, fig. 3: NCM forests that grow, on spirals",
    shows="accuracy relative to retraining, test time and training time from 4 spirals to 20",
    sources=protocol.SPIRALS,
    judge=judge,
    runs=protocol.ncm_runs,
    measure=protocol.measure_spirals,
    draw=plots.draw_over_classes,
    notes=(
        "The report leaves the spirals' constants open; they are those of "
        "`evergrow.research.spirals`, drawn anew for each seed, and come in the order of angles.",
        "The report names no number of trees and no smallest leaf: here 50 trees (10 in a quick "
        "run) and 5 samples. RTST chooses nodes uniformly, RTSTQ by quality, each 80 % of them.",
    ),
)
