"""Fig. 4 of the report: SVM forests beside NCM forests at 20 spirals, and the text on both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evergrow.experiments.experiment import Experiment, Finding, Run
from evergrow.experiments.lab import Lab
from evergrow.experiments.report import growing, pictures
from evergrow.experiments.table import Row, Table

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

# Points between forests that still count as similar, and the share of the training time.
SIMILAR, SHARE = 0.03, 0.3
# How many times as long counts as slower: a busy machine makes less of a difference.
SLOWER = 1.5


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
            "The report trains its NCM forest 21 times as fast as its SVM forest.",
            "training on all classes takes the SVM forest {:.1f} times as long",
            svm.mean("update_seconds", strategy=growing.RETRAINED)
            / ncm.mean("update_seconds", strategy=growing.RETRAINED),
        ),
        _ratio(
            "The report finds SVM forests slower to test too, 5.3 times.",
            "the SVM forest takes {:.2f} times as long to test",
            svm.mean("test_seconds", strategy=growing.RETRAINED)
            / ncm.mean("test_seconds", strategy=growing.RETRAINED),
        ),
        _errors(ncm, svm),
        _test_work(table),
    ]


def _accuracy_is_similar(table: Table) -> Finding:
    gaps = {
        name: table.mean("accuracy", forest="NCM", strategy=name)
        - table.mean("accuracy", forest="SVM", strategy=name)
        for name in (growing.RETRAINED, *growing.GROWING)
    }
    widest = max(gaps, key=lambda name: abs(gaps[name]))
    return Finding(
        "The report finds both forests similar and near the baseline with all strategies but ULS.",
        f"Here they differ most with {widest}: the NCM forest is {100 * gaps[widest]:+.1f} points "
        "from the SVM forest.",
        abs(gaps[widest]) <= SIMILAR,
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


def _ratio(claim: str, here: str, ratio: float) -> Finding:
    return Finding(claim, f"Here {here.format(ratio)}.", ratio > SLOWER)


def _errors(ncm: Table, svm: Table) -> Finding:
    ours, theirs = (t.where(strategy=growing.RETRAINED) for t in (ncm, svm))
    better = growing.clearly_higher(theirs, ours, "test_error")
    here = (
        f"Here {100 * ours.mean('test_error'):.2f} % (NCM) and "
        f"{100 * theirs.mean('test_error'):.2f} % (SVM), training errors "
        f"{100 * ours.mean('train_error'):.2f} % and {100 * theirs.mean('train_error'):.2f} %"
    )
    return Finding(
        "The report finds test errors close, 2.15 % (NCM) and 3.6 % (SVM), NCM slightly better.",
        here + ("; seeds differ by more, or there is only one." if better is None else "."),
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
        "of ULS far below.",
        f"Here a test sample costs {min(grown):.2f} to {max(grown):.2f} of the comparisons of the "
        f"retrained forest, with ULS {min(uls):.2f} to {max(uls):.2f}.",
        max(grown) <= 1 and max(uls) < min(grown),
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
