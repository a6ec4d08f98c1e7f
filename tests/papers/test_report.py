"""The report: strategies on one stream with retraining, borders of maps, and its printed table."""

import numpy as np
import pytest

pytest.importorskip("evergrow_papers", reason="evergrow-papers is not installed")

from evergrow_papers import claims, report
from evergrow_papers.frame import Context
from evergrow_papers.table import Table

SEEDS = (0, 1, 2)


def quick(experiment, **options):
    return Context(experiment.sources, quick=True, n_jobs=1, **options)


def save_classes(path, n_classes, n_features=6):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n_classes), 20)
    X = rng.standard_normal((len(labels), n_features)) + 3 * labels[:, None]
    np.savez(path, X_train=X, y_train=labels, X_test=X, y_test=labels)
    return path


def agrees(experiment, key, rows):
    """Whether a claim agrees for these rows, which have all seeds."""
    table = Table({**row, "seed": seed} for seed in SEEDS for row in rows)
    (found,) = claims.judge({key: experiment.claims[key]}, table, report.WORDS)
    return found.agrees


def test_strategies_follow_the_stream_of_retraining():
    (run,) = report.list_runs(quick(report.FIG3), chunk=[8], n_trees=[2])
    rows = Table(report.measure_strategies(quick(report.FIG3), run))
    assert rows.values("strategy") == [report.RETRAINED, *report.STRATEGIES]
    for name in rows.values("strategy"):
        assert [row["n_classes"] for row in rows.where(strategy=name)] == [4, 12, 20]
    retrained = rows.where(strategy=report.RETRAINED)
    assert [*retrained.column("relative")] == [1, 1, 1]
    for row in rows:
        baseline = retrained.mean("accuracy", n_classes=row["n_classes"])
        assert row["relative"] == pytest.approx(row["accuracy"] / baseline)
    assert rows.mean("relative", strategy="ULS", n_classes=20) < 0.7


@pytest.mark.parametrize(("name", "value"), [("n_estimators", 1), ("share", 0.05)])
def test_a_varied_setting_is_followed(name, value):
    context = quick(report.FIG3)
    setting = {"chunk": [8], "n_trees": [2], "strategies": [["RTST"]]}
    (usual,) = report.list_runs(context, **setting)
    (other,) = report.list_runs(context, **setting, varied=[name], value=[value])
    one, two = (Table(report.measure_strategies(context, run, [20])) for run in (usual, other))
    assert two.values("value") == [value]
    assert one.mean("comparisons", strategy="RTST") != two.mean("comparisons", strategy="RTST")


def test_runs_fit_the_classes_of_your_own_data(tmp_path):
    seven = quick(report.FIG5, data=save_classes(tmp_path / "seven.npz", 7))
    assert [run["chunk"] for run in report.FIG5.runs(seven)] == [2]
    assert {run["initial"] for run in report.TABLE1.runs(seven)} == {4}
    four = quick(report.FIG5, data=save_classes(tmp_path / "four.npz", 4))
    with pytest.raises(ValueError, match="has 4 classes; at least 5 are needed"):
        report.FIG5.runs(four)


def test_maps_show_your_own_data_in_the_plane(tmp_path):
    context = quick(report.FIG2, data=save_classes(tmp_path / "own.npz", 7))
    run = next(run for run in report.FIG2.runs(context) if run["split"] == "NCM")
    (row,) = report.FIG2.measure(context, run)
    assert np.shape(row["map"]) == (180, 180, 3)
    assert np.shape(row["points"]) == (6 * 20, 3)
    assert {int(code) for *_, code in row["points"]} == {*range(6)}


def test_a_staircase_is_longer_than_a_straight_line():
    x, y = np.meshgrid(np.arange(200), np.arange(200))
    everywhere = np.ones((200, 200), bool)
    line = report.boundary_length((x > y).astype(int), everywhere)
    stairs = report.boundary_length((x // 20 > y // 20).astype(int), everywhere)
    assert line == pytest.approx(np.sqrt(2), rel=0.12)
    assert stairs == pytest.approx(1.8, rel=0.1)
    assert report.boundary_length((x > y).astype(int), ~everywhere) == 0


@pytest.mark.parametrize(("length", "expected"), [(6.0, True), (9.5, False)])
def test_borders_are_smoother_by_their_excess_length(length, expected):
    lengths = {"axis": 10.0, "SVM": length, report.TRUE: 4.0}
    rows = [{"split": split, "boundary": each} for split, each in lengths.items()]
    assert agrees(report.FIG2, "smoother, SVM", rows) is expected
    without_true_borders = rows[:2]
    assert agrees(report.FIG2, "smoother, SVM", without_true_borders) is None


@pytest.mark.parametrize(("change", "expected"), [(0.0, True), (0.05, False), (-0.05, False)])
@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("retrained", [report.RETRAINED]),
        ("printed, uls", ["ULS"]),
        ("printed, others", report.GROWING),
    ],
)
def test_the_table_holds_neither_below_nor_above(key, names, change, expected):
    rows = []
    for row in report.PUBLISHED:
        column = "relative" if "relative" in row else "accuracy"
        moved = change if row["strategy"] in names and row["forest"] == "NCM" else 0.0
        rows.append({**row, column: row[column] + moved})
    assert agrees(report.TABLE1, key, rows) is expected


def test_the_printed_numbers_are_those_of_the_report():
    printed = Table(report.PUBLISHED)
    assert len(printed) == 6 + 72
    cells = printed.where(forest="SVM", initial=6, strategy="RTSTQ")
    assert [*cells.column("relative")] == pytest.approx([0.985, 0.988, 0.994])
    assert printed.mean("accuracy", forest="NCM", strategy=report.RETRAINED, n_classes=20) == 0.98
