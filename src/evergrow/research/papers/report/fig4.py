"""Fig. 4 of the report: SVM forests beside NCM forests at 20 spirals, and the text on both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evergrow.research.experiments.contrasts import combined, contrast
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.report import growing, pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

# Section 3.1.1, forests trained on all 20 classes at once.
_AT_ONCE: Row = {"strategy": growing.RETRAINED, "n_classes": growing.N_CLASSES}
PUBLISHED: tuple[Row, ...] = (
    {
        **_AT_ONCE,
        "forest": "SVM",
        "accuracy": 0.964,
        "test_error": 0.036,
        "train_error": 0.0177,
        "update_seconds": 1762.05,
        "test_seconds": 1.92,
    },
    {
        **_AT_ONCE,
        "forest": "NCM",
        "accuracy": 0.9785,
        "test_error": 0.0215,
        "train_error": 0.0098,
        "update_seconds": 82.48,
        "test_seconds": 0.36,
    },
)

# Points between forests that still count as similar, the share of retraining's accuracy that is
# near it, and the share of the training time.
SIMILAR, NEAR, SHARE = 0.03, 0.9, 0.3
# Printed ratios of times hold when ours is no further from them than by this factor.
FACTOR = 2.0
# The share of retraining's comparisons that is far below them.
FAR = 0.5


def _runs(lab: Lab) -> list[dict[str, Any]]:
    return [growing.run_of(lab, kind, seed) for seed in lab.seeds() for kind in ("NCM", "SVM")]


def _measure(lab: Lab, run: Run) -> Sequence[Row]:
    return growing.all_strategies(lab, run, growing.spirals_of(lab, run), [growing.N_CLASSES])


def _draw(figure: Figure, table: Table) -> None:
    pictures.draw_bars(figure, table, ("update_seconds", "test_seconds"), PUBLISHED)


def _judge(table: Table) -> list[Finding]:
    ncm, svm = table.where(forest="NCM"), table.where(forest="SVM")
    return [
        _accuracy_is_similar(table),
        _updates_are_cheap(table),
        _ratio(
            "The report trains its NCM forest 21.4 times as fast as its SVM forest",
            _printed_ratio("update_seconds"),
            "training on all classes takes the SVM forest {:.1f} times as long",
            svm.mean("update_seconds", strategy=growing.RETRAINED)
            / ncm.mean("update_seconds", strategy=growing.RETRAINED),
        ),
        _ratio(
            "The report finds SVM forests slower to test too, 5.3 times",
            _printed_ratio("test_seconds"),
            "the SVM forest takes {:.2f} times as long to test",
            svm.mean("test_seconds", strategy=growing.RETRAINED)
            / ncm.mean("test_seconds", strategy=growing.RETRAINED),
        ),
        _errors(table, ncm, svm),
        _test_work(table),
    ]


def _accuracy_is_similar(table: Table) -> Finding:
    gaps = {
        name: table.mean("accuracy", forest="NCM", strategy=name)
        - table.mean("accuracy", forest="SVM", strategy=name)
        for name in (growing.RETRAINED, *growing.GROWING)
    }
    widest = max(gaps, key=lambda name: abs(gaps[name]))
    similar = [
        contrast(table.where(strategy=name), "accuracy", {"forest": "NCM"}, {"forest": "SVM"})
        for name in gaps
    ]
    behind = [
        contrast(
            table.where(forest=kind),
            "relative",
            {"strategy": name},
            {"strategy": growing.RETRAINED},
        )
        for kind in ("NCM", "SVM")
        for name in growing.GROWING
    ]
    least = min(each.difference for each in behind)
    return Finding(
        "The report finds both forests similar and near the baseline with all strategies but ULS; "
        f"{100 * SIMILAR:.0f} points count as similar, {100 * NEAR:.0f} % of its accuracy as near.",
        f"Here they differ most with {widest}: the NCM forest is {100 * gaps[widest]:+.1f} points "
        f"from the SVM forest. The lowest has {100 * (1 + least):.1f} % of retraining's accuracy.",
        combined(
            [
                *(each.within(SIMILAR) for each in similar),
                *(each.above(NEAR - 1) for each in behind),
            ]
        ),
    )


def _updates_are_cheap(table: Table) -> Finding:
    shares = {
        (kind, name): growing.shared(table, "update_seconds", forest=kind, strategy=name)
        for kind in ("NCM", "SVM")
        for name in growing.STRATEGIES
    }
    kind, name = most = max(shares, key=lambda key: shares[key])
    cheap = ", ".join(f"{k} {n} {s:.2f}" for (k, n), s in shares.items())
    return Finding(
        "The report finds every update below 30 % of the time of retraining.",
        f"Here the shares of the last step are {cheap}; the dearest is {kind} with {name}.",
        shares[most] < SHARE,
    )


def _printed_ratio(column: str) -> float:
    """Times of the SVM forest beside those of the NCM forest, as printed."""
    svm, ncm = PUBLISHED
    return float(svm[column] / ncm[column])


def _ratio(claim: str, printed: float, here: str, ratio: float) -> Finding:
    return Finding(
        f"{claim}; half to twice as many count as that.",
        f"Here {here.format(ratio)}.",
        1 / FACTOR <= ratio / printed <= FACTOR,
    )


def _errors(table: Table, ncm: Table, svm: Table) -> Finding:
    ours, theirs = (t.where(strategy=growing.RETRAINED) for t in (ncm, svm))
    chosen = table.where(strategy=growing.RETRAINED)
    gap = contrast(chosen, "test_error", {"forest": "SVM"}, {"forest": "NCM"})
    better = combined([gap.verdict, gap.below(SIMILAR)])
    here = (
        f"Here {100 * ours.mean('test_error'):.2f} % (NCM) and "
        f"{100 * theirs.mean('test_error'):.2f} % (SVM), training errors "
        f"{100 * ours.mean('train_error'):.2f} % and {100 * theirs.mean('train_error'):.2f} %"
    )
    return Finding(
        "The report finds test errors close, 2.15 % (NCM) and 3.6 % (SVM), NCM slightly better; "
        f"up to {100 * SIMILAR:.0f} points count as slightly.",
        here + ("; not clear of chance." if better is None else "."),
        better,
    )


def _test_work(table: Table) -> Finding:
    shares = {
        (kind, name): growing.shared(table, "comparisons", forest=kind, strategy=name)
        for kind in ("NCM", "SVM")
        for name in growing.STRATEGIES
    }
    grown = [share for (_, name), share in shares.items() if name != "ULS"]
    uls = [share for (_, name), share in shares.items() if name == "ULS"]
    return Finding(
        "The report finds test times of grown forests a little below those of retrained ones and "
        f"of ULS far below; {100 * FAR:.0f} % of the comparisons are the border.",
        f"Here a test sample costs {min(grown):.2f} to {max(grown):.2f} of the comparisons of the "
        f"retrained forest, with ULS {min(uls):.2f} to {max(uls):.2f}.",
        min(grown) > FAR and max(grown) <= 1 and max(uls) <= FAR,
    )


EXPERIMENT = Experiment(
    name="report-fig4",
    title="Report, fig. 4: SVM and NCM forests at 20 spirals",
    shows="accuracy, test time and training time of both forests with every strategy",
    sources=growing.SPIRALS,
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=growing.KEYS,
    exact=("accuracy", "relative", "test_error", "train_error", "comparisons"),
    timed=growing.TIMED,
    published=PUBLISHED,
    size=(9.0, 3.6),
    notes=(
        "The report's times are of its own Matlab code on another machine: only their ratios "
        "can be compared. Training time is that of the last step.",
        "The report names no number of trees and no smallest leaf: here 50 trees (10 in a quick "
        "run) and 5 samples. Spirals are drawn anew for each seed.",
    ),
)
