"""The report's experiments: strategies beside retraining, and decision maps."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from evergrow.experiments import Lab, Table, find_experiments, perform
from evergrow.experiments.report import fig2, fig3, fig4, fig5, fig6, fig7, growing, maps, table1
from evergrow.streams import mixture

EXPERIMENTS = {experiment.name: experiment for experiment in find_experiments(["report"])}


class StoppedError(Exception):
    """Stands for a kill in the middle of a run."""


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """A user's own small file, with fewer classes than the report's."""
    data = mixture(7, 6, 16, 6, distance=2.0)
    path = tmp_path_factory.mktemp("data") / "own.npz"
    np.savez(
        path,
        X_train=data.X_train,
        y_train=data.y_train,
        X_test=data.X_test,
        y_test=data.y_test,
    )
    return path


def words(path):
    return {element.text for element in ElementTree.parse(path).iter() if element.text}


def smaller(experiment, n_runs=None, **setting):
    """The same experiment with some settings of its runs replaced."""

    def runs(lab):
        return [{**run, **setting} for run in experiment.runs(lab)[:n_runs]]

    return replace(experiment, runs=runs)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_on_the_users_own_features(name, features, tmp_path):
    experiment = smaller(EXPERIMENTS[name], n_trees=2)
    lab = Lab(experiment.sources, quick=True, data=features, n_jobs=1)
    outcome = perform(experiment, tmp_path, lab)
    assert outcome.findings
    assert (tmp_path / f"{name}.csv").read_text().startswith(",".join(experiment.columns))


def test_a_run_that_was_stopped_gives_the_table_of_one_that_was_not(features, tmp_path):
    experiment = smaller(EXPERIMENTS["report-table1"], n_trees=2)
    calls = []

    def stopping(lab, run):
        calls.append(run)
        if len(calls) > 1:
            raise StoppedError
        return experiment.measure(lab, run)

    lab = Lab(experiment.sources, quick=True, data=features, n_jobs=1)
    with pytest.raises(StoppedError):
        perform(replace(experiment, measure=stopping), tmp_path / "stopped", lab)
    perform(experiment, tmp_path / "stopped", lab)
    perform(experiment, tmp_path / "whole", lab)
    tables = [tmp_path / each / "report-table1.csv" for each in ("stopped", "whole")]
    assert tables[0].read_bytes() == tables[1].read_bytes()


def test_every_strategy_follows_the_same_stream_as_retraining(tmp_path):
    experiment = EXPERIMENTS["report-fig3"]
    lab = Lab(experiment.sources, quick=True, n_jobs=1)
    rows = Table(experiment.measure(lab, growing.run_of(lab, "NCM", 0, n_trees=2, chunk=8)))
    assert rows.values("strategy") == [growing.RETRAINED, *growing.STRATEGIES]
    for name in rows.values("strategy"):
        assert [row["n_classes"] for row in rows.where(strategy=name)] == [4, 12, 20]
    assert rows.where(strategy=growing.RETRAINED).column("relative").tolist() == [1, 1, 1]
    assert rows.mean("relative", strategy="ULS", n_classes=20) < 0.7


def test_seeds_draw_their_own_spirals():
    lab = Lab(growing.SPIRALS, quick=True)
    runs = [growing.run_of(lab, "NCM", seed) for seed in (0, 0, 1)]
    first, again, other = (growing.spirals_of(lab, run).X_train for run in runs)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_numbers_of_table_1_are_those_of_the_report():
    printed = Table(table1.EXPERIMENT.published)
    assert len(printed) == 6 + 72
    where = {"forest": "SVM", "initial": 6, "strategy": "RTSTQ"}
    assert printed.where(**where).column("relative").tolist() == pytest.approx(
        [0.985, 0.988, 0.994]
    )
    assert printed.where(forest="NCM", strategy="retrained", n_classes=20).mean("accuracy") == 0.98


def test_the_times_beside_fig_4_are_those_of_the_report():
    svm, ncm = fig4.EXPERIMENT.published
    assert (svm["update_seconds"], ncm["update_seconds"]) == (1762.05, 82.48)
    assert (svm["test_error"], ncm["train_error"]) == (0.036, 0.0098)


def as_printed(change=0.0):
    """A table that holds the report's numbers, the growing strategies' changed."""
    rows = []
    for row in table1.EXPERIMENT.published:
        if "relative" in row:
            moved = change if row["strategy"] in growing.GROWING else 0.0
            rows.append({**row, "seed": 0, "relative": row["relative"] + moved})
    return Table(rows)


@pytest.mark.parametrize(("change", "agrees"), [(0.0, True), (0.05, True), (-0.05, False)])
def test_table_1_agrees_when_it_is_not_below_the_report(change, agrees):
    findings = {f.claim: f.agrees for f in table1.EXPERIMENT.judge(as_printed(change))}
    assert findings["The report's table holds for ULS."] is True
    assert findings["The report's table holds for the others."] is agrees


def test_table_1_differs_when_uls_does_not_gain_from_initial_classes():
    level = [{**row, "relative": 0.5} for row in as_printed() if row["strategy"] == "ULS"]
    others = [row for row in as_printed() if row["strategy"] != "ULS"]
    findings = table1.EXPERIMENT.judge(Table(level + others))
    assert [f.agrees for f in findings if "gains from more" in f.claim] == [False]


def made_up(forest="NCM", **changes):
    """Rows of all strategies at 4, 6 and 20 classes, by what is said of each or of all."""
    usual = {"accuracy": 0.9, "relative": 0.95, "comparisons": 10.0, "update_seconds": 0.1}
    usual |= {"test_seconds": 0.1, "training_seconds": 1.0, "test_error": 0.1, "train_error": 0.1}
    rows = []
    for n_classes in (4, 6, 20):
        for name in (growing.RETRAINED, *growing.STRATEGIES):
            row = {"forest": forest, "strategy": name, "n_classes": n_classes, "seed": 0}
            rows.append({**row, **usual, "chunk": 2, "initial": 4, **changes.get(name, {})})
    return rows


def agreements(experiment, rows):
    return [finding.agrees for finding in experiment.judge(Table(rows))]


def test_updates_slower_than_retraining_differ_from_fig_3():
    fast = agreements(fig3.EXPERIMENT, made_up(retrained={"update_seconds": 1.0}))
    slow = agreements(fig3.EXPERIMENT, made_up(RTST={"update_seconds": 2.0}))
    assert (fast[2], slow[2]) == (True, False)
    assert (fast[3], slow[3]) == (True, False)


def test_a_slower_forest_of_means_differs_from_fig_4():
    ncm = made_up(retrained={"update_seconds": 1.0})
    slower = made_up("SVM", retrained={"update_seconds": 20.0})
    faster = made_up("SVM", retrained={"update_seconds": 0.5})
    assert agreements(fig4.EXPERIMENT, ncm + slower)[2] is True
    assert agreements(fig4.EXPERIMENT, ncm + faster)[2] is False


def test_one_seed_decides_no_order_of_errors():
    rows = made_up() + made_up("SVM", retrained={"test_error": 0.2})
    one = agreements(fig4.EXPERIMENT, [row for row in rows if row["n_classes"] == 20])
    assert one[4] is None
    two = agreements(fig4.EXPERIMENT, rows)
    assert two[4] is True


def test_chunks_of_unequal_accuracy_differ_from_fig_5():
    rows = [{**row, "chunk": chunk} for chunk in (2, 4, 8) for row in made_up()]
    assert agreements(fig5.EXPERIMENT, rows)[0] is True
    worse = [{**row, "relative": 0.5} if row["chunk"] == 8 else row for row in rows]
    assert agreements(fig5.EXPERIMENT, worse)[0] is False


def test_igt_above_rtst_differs_from_fig_6():
    below = made_up(IGT={"relative": 0.8, "update_seconds": 0.05})
    above = made_up(IGT={"relative": 0.99, "update_seconds": 0.05})
    assert (agreements(fig6.EXPERIMENT, below)[2], agreements(fig6.EXPERIMENT, above)[2]) == (
        True,
        False,
    )


def test_text_and_caption_of_fig_7_cannot_both_agree():
    better = {name: {"accuracy": 0.95} for name in growing.STRATEGIES}
    found = agreements(fig7.EXPERIMENT, made_up(**better) + made_up("SVM"))
    assert found[:2] == [True, False]


def test_the_picture_of_maps_names_axes_and_classes(tmp_path):
    experiment = smaller(fig2.EXPERIMENT, n_trees=2)
    perform(experiment, tmp_path, Lab(experiment.sources, quick=True, n_jobs=1))
    said = words(tmp_path / "report-fig2.svg")
    assert {"first feature", "second feature", "class 0", "class 5"} <= said
    assert (tmp_path / "report-fig2.svg").stat().st_size < 300_000


def test_a_staircase_is_longer_than_the_line_beside_it():
    n = 200
    x, y = np.meshgrid(np.arange(n), np.arange(n))
    everywhere = np.ones((n, n), bool)
    line = maps.boundary_length((x > y).astype(int), everywhere)
    stairs = maps.boundary_length((x // 20 > y // 20).astype(int), everywhere)
    assert line == pytest.approx(np.sqrt(2), rel=0.12)
    assert stairs == pytest.approx(1.8, rel=0.1)


def test_borders_far_from_samples_do_not_count():
    answers = np.repeat([[0], [1]], 50, axis=0) * np.ones((100, 100), int)
    assert maps.boundary_length(answers, np.zeros((100, 100), bool)) == 0


def test_maps_are_unpacked_as_they_were():
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 3))
    assert np.array_equal(maps.unpacked(maps.packed(pixels), (4, 5, 3)), pixels)
