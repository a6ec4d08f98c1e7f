"""The report's experiments: strategies compared with retraining, and decision maps."""

from dataclasses import replace

import numpy as np
import pytest

from evergrow.research import ExperimentContext, Table, find_experiments, mixture, run_experiment
from evergrow.research.papers.report import (
    decision_maps,
    fig2,
    fig4,
    protocol,
    table1,
)
from tests.research.papers.checks import (
    check_resuming,
    check_verdicts,
    save_features,
    svg_words,
    verdict,
)

EXPERIMENTS = {experiment.name: experiment for experiment in find_experiments(["report"])}


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """A user's own small file, with fewer classes than the report's."""
    path = tmp_path_factory.mktemp("data") / "own.npz"
    return save_features(path, mixture(7, 6, 16, 6, distance=2.0))


def smaller(experiment, n_runs=None, **setting):
    """The same experiment with some settings of its runs replaced."""

    def runs(context):
        return [{**run, **setting} for run in experiment.runs(context)[:n_runs]]

    return replace(experiment, runs=runs)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_on_the_users_own_features(name, features, tmp_path):
    experiment = smaller(EXPERIMENTS[name], n_trees=2)
    context = ExperimentContext(experiment.sources, quick=True, data=features, n_jobs=1)
    outcome = run_experiment(experiment, tmp_path, context)
    assert outcome.findings
    assert (tmp_path / f"{name}.csv").read_text().startswith(",".join(experiment.columns))


def test_a_run_that_was_stopped_gives_the_table_of_one_that_was_not(features, tmp_path):
    experiment = smaller(EXPERIMENTS["report-table1"], n_trees=2)
    context = ExperimentContext(experiment.sources, quick=True, data=features, n_jobs=1)
    check_resuming(experiment, tmp_path, lambda: context, 1)


@pytest.mark.parametrize("n_train", [6, 16])
def test_few_rows_are_enough_for_a_stream(n_train, tmp_path):
    path = save_features(tmp_path / "few.npz", mixture(5, 6, n_train, 4, distance=2.0))
    experiment = smaller(EXPERIMENTS["report-fig3"], n_trees=2)
    context = ExperimentContext(experiment.sources, quick=True, data=path, n_jobs=1)
    assert run_experiment(experiment, tmp_path / "results", context).findings


def test_data_without_a_class_to_come_are_refused_before_any_run(tmp_path):
    path = save_features(tmp_path / "four.npz", mixture(4, 6, 10, 4))
    context = ExperimentContext(protocol.SPIRALS, data=path)
    with pytest.raises(ValueError, match="has 4 classes; this experiment begins with 4 and needs"):
        EXPERIMENTS["report-fig3"].runs(context)


def test_every_strategy_follows_the_same_stream_as_retraining(tmp_path):
    experiment = EXPERIMENTS["report-fig3"]
    context = ExperimentContext(experiment.sources, quick=True, n_jobs=1)
    rows = Table(
        experiment.measure(context, protocol.run_of(context, "NCM", 0, n_trees=2, chunk=8))
    )
    assert rows.values("strategy") == [protocol.RETRAINED, *protocol.STRATEGIES]
    for name in rows.values("strategy"):
        assert [row["n_classes"] for row in rows.where(strategy=name)] == [4, 12, 20]
    assert rows.where(strategy=protocol.RETRAINED).column("relative").tolist() == [1, 1, 1]
    assert rows.mean("relative", strategy="ULS", n_classes=20) < 0.7


def test_seeds_draw_their_own_spirals():
    context = ExperimentContext(protocol.SPIRALS, quick=True)
    runs = [protocol.run_of(context, "NCM", seed) for seed in (0, 0, 1)]
    first, again, other = (protocol.spirals_of(context, run).X_train for run in runs)
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


def test_the_published_times_of_fig_4_are_those_of_the_report():
    svm, ncm = fig4.EXPERIMENT.published
    assert (svm["update_seconds"], ncm["update_seconds"]) == (1762.05, 82.48)
    assert (svm["test_error"], ncm["train_error"]) == (0.036, 0.0098)


SEEDS = (0, 1, 2)


def as_printed(**changes):
    """A table that holds the report's numbers, those of some strategies changed."""
    rows = []
    for row in table1.EXPERIMENT.published:
        column = "relative" if "relative" in row else "accuracy"
        moved = row[column] + changes.get(row["strategy"], 0.0)
        rows += [{"initial": 4, **row, "seed": seed, column: moved} for seed in SEEDS]
    return Table(rows)


@pytest.mark.parametrize(("change", "agrees"), [(0.0, True), (0.05, False), (-0.05, False)])
@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("ULS", ["ULS"]),
        ("the others", protocol.GROWING),
        ("retrained forests", [protocol.RETRAINED]),
    ],
)
def test_table_1_holds_when_it_is_neither_below_nor_above_the_report(group, names, change, agrees):
    table = as_printed(**dict.fromkeys(names, change))
    assert verdict("report-table1", table, f"The report's table holds for {group}") is agrees


def test_one_number_far_from_the_report_is_enough_to_differ():
    cell = {"forest": "NCM", "initial": 6, "strategy": "ULS", "n_classes": 16}
    moved = [
        {**row, "relative": row["relative"] + 0.12 * (cell.items() <= row.items())}
        for row in as_printed()
        if "relative" in row
    ]
    assert verdict("report-table1", Table(moved), "The report's table holds for ULS") is False


def test_the_reports_own_spread_is_that_of_igt_in_forests_of_means():
    assert table1.printed_spread() == pytest.approx(97.0 - 92.9)


def test_table_1_sees_strategies_that_depend_on_initial_classes():
    start = "The report finds the other strategies insensitive"
    assert verdict("report-table1", as_printed(), start) is True
    moved = [
        {**row, "relative": 0.8} if (row["initial"], row["strategy"]) == (6, "RTST") else row
        for row in as_printed()
    ]
    assert verdict("report-table1", Table(moved), start) is False


def test_table_1_differs_when_uls_does_not_gain_from_initial_classes():
    falling = [
        {**row, "relative": 0.9 - 0.05 * row["initial"]} if row["strategy"] == "ULS" else row
        for row in as_printed()
    ]
    start = "The report finds that ULS gains"
    assert verdict("report-table1", as_printed(), start) is True
    assert verdict("report-table1", Table(falling), start) is False


def test_one_number_of_initial_classes_shows_no_influence():
    table = as_printed().where(initial=4)
    assert verdict("report-table1", table, "The report finds that ULS gains") is None
    assert verdict("report-table1", table, "The report finds the other strategies") is None


def test_the_reports_numbers_are_not_drawn_at_classes_that_were_not_measured():
    from matplotlib.figure import Figure

    figure = Figure()
    table1.EXPERIMENT.draw(figure, as_printed().where(n_classes=12))
    places = {x for line in figure.axes[0].lines for x in line.get_xdata()}
    assert places == {12}


def made_up(forest="NCM", **changes):
    """Rows of all strategies at 4, 6 and 20 classes, by the claim about each or about all."""
    usual = {"accuracy": 0.9, "relative": 0.95, "comparisons": 10.0, "update_seconds": 0.1}
    usual |= {"test_seconds": 0.1, "training_seconds": 1.0, "test_error": 0.1, "train_error": 0.1}
    rows = []
    for n_classes in (4, 6, 20):
        for name in (protocol.RETRAINED, *protocol.STRATEGIES):
            row = {"forest": forest, "strategy": name, "n_classes": n_classes, "initial": 4}
            row |= {"chunk": 2, **usual, **changes.get(name, {})}
            if name == protocol.RETRAINED:
                row["relative"] = 1.0
            rows += [{**row, "seed": seed} for seed in SEEDS]
    return rows


def both(svm=None, **changes):
    """The same changes of the NCM forest and, unless others are given, of the SVM forest."""
    return made_up(**changes) + made_up("SVM", **(changes if svm is None else svm))


def by_chunk(last=0.95):
    """Relative accuracies with chunks of 2, 4 and 8 classes."""
    return [
        {**row, "chunk": chunk, "relative": last if chunk == 8 else row["relative"]}
        for chunk in (2, 4, 8)
        for row in made_up()
    ]


def uls_at_the_end(relative):
    changed = {"strategy": "ULS", "n_classes": 20}.items()
    return [{**row, "relative": relative} if changed <= row.items() else row for row in made_up()]


def borders(ours):
    """Lengths of the borders of thresholds, which are 10, and of other splits."""
    return [
        {"split": split, "n_train": 70, "seed": seed, "boundary": length, "accuracy": 0.9}
        for split, length in {"axis": 10.0, "SVM": ours, "NCM": ours}.items()
        for seed in SEEDS
    ]


def svm_training(times):
    return both(retrained={"update_seconds": 1.0}, svm={"retrained": {"update_seconds": times}})


ERRORS = {error: both(svm={"retrained": {"test_error": error}}) for error in (0.115, 0.2)}
FASTER, SLOWER = (made_up(retrained={"comparisons": n}) for n in (12.0, 8.0))
IGT = {
    share: made_up(IGT={"relative": share, "update_seconds": 0.05}) for share in (0.93, 0.99, 0.63)
}
BETTER = {name: {"accuracy": 0.95} for name in protocol.STRATEGIES}

CASES = {
    "fig2: borders are much shorter": (borders(6.0), "+..."),
    "fig2: borders are a little shorter": (borders(9.5), "-..."),
    "fig3: updates are faster than retraining": (
        made_up(retrained={"update_seconds": 1.0}),
        "..++.",
    ),
    "fig3: RTST is slower than retraining": (made_up(RTST={"update_seconds": 2.0}), "..--."),
    "fig3: ULS falls far behind": (uls_at_the_end(0.4), ".+..."),
    "fig3: ULS falls a little behind": (uls_at_the_end(0.85), ".-..."),
    "fig4: SVM forests train half as long": (svm_training(0.5), "..-..."),
    "fig4: SVM forests train a little longer": (svm_training(1.6), "..-..."),
    "fig4: SVM forests train 20 times as long": (svm_training(20.0), "..+..."),
    "fig4: SVM forests train 100 times as long": (svm_training(100.0), "..-..."),
    "fig4: errors are close": (ERRORS[0.115], "....+."),
    "fig4: one seed decides no order of errors": (
        [row for row in ERRORS[0.115] if row["seed"] == 0],
        "....?.",
    ),
    "fig4: errors are far apart": (ERRORS[0.2], "....-."),
    "fig4: forests that grow are near retraining": (both(IGT={"relative": 0.95}), "+....."),
    "fig4: forests that grow are far from retraining": (both(IGT={"relative": 0.8}), "-....."),
    "fig5: chunks of equal accuracy": (by_chunk(), "+.."),
    "fig5: chunks of unequal accuracy": (by_chunk(0.5), "-.."),
    "fig5: one chunk size shows nothing": (made_up(), "???"),
    "fig6: IGT is slightly less accurate": (IGT[0.93], "..+.."),
    "fig6: IGT is as accurate": (IGT[0.99], "..-.."),
    "fig6: IGT is far less accurate": (IGT[0.63], "..-.."),
    "fig6: forests that grow are faster to test": (FASTER, "....+"),
    "fig6: forests that grow are slower to test": (SLOWER, "....-"),
    "fig7: forests that grow are faster to test": (FASTER, ".......-"),
    "fig7: forests that grow are slower to test": (SLOWER, ".......+"),
    "fig7: text and caption cannot both agree": (both(**BETTER, svm={}), "+-......"),
}


@pytest.mark.parametrize("case", CASES)
def test_verdicts(case):
    check_verdicts(EXPERIMENTS[f"report-{case.partition(':')[0]}"], *CASES[case])


def varied(name, value, **changes):
    """Rows of runs in which one setting has another value."""
    return [{**row, "varied": name, "value": value} for row in made_up(**changes)]


def test_runs_that_vary_a_setting_explain_and_do_not_decide():
    usual = made_up(RTST={"update_seconds": 2.0})
    other = varied("share", 0.02, retrained={"update_seconds": 1.0}, RTST={"update_seconds": 0.4})
    alone, both_kinds = (EXPERIMENTS["report-fig3"].judge(Table(r)) for r in (usual, usual + other))
    assert [f.decision for f in both_kinds] == [f.decision for f in alone]
    (slower,) = [f for f in both_kinds if "every strategy faster" in f.claim]
    assert "NCM RTST 0.40 with 0.02 (95.0 %), 20.00 with 0.8 (95.0 %)" in slower.reason


def test_reasons_are_given_only_where_a_claim_differs():
    rows = made_up(retrained={"update_seconds": 1.0}) + varied("share", 0.02)
    findings = EXPERIMENTS["report-fig3"].judge(Table(rows))
    assert not any(f.why for f in findings if f.agrees is not False)


def test_the_distance_from_table_1_is_shown_for_other_numbers_of_trees():
    usual = as_printed(ULS=0.05)
    fewer = [{**row, "varied": "n_estimators", "value": 5} for row in as_printed(ULS=0.02)]
    findings = table1.EXPERIMENT.judge(Table([*usual, *fewer]))
    (uls,) = [f for f in findings if f.claim.startswith("The report's table holds for ULS")]
    assert uls.agrees is False
    assert "NCM +2.0 with 5; SVM +2.0 with 5 trees" in uls.reason


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_train", 20), ("n_estimators", 1), ("share", 0.05), ("min_samples_leaf", 20)],
)
def test_a_varied_setting_is_followed(name, value):
    context = ExperimentContext(protocol.SPIRALS, quick=True, n_jobs=1)
    run = {**protocol.run_of(context, "NCM", 0, n_trees=2, chunk=8), "strategies": ["RTST"]}
    usual, varied_rows = (
        Table(protocol.measure_spirals(context, each, [20]))
        for each in (run, {**run, "varied": name, "value": value})
    )
    assert varied_rows.values("strategy") == [protocol.RETRAINED, "RTST"]
    assert varied_rows.values("value") == [value]
    assert usual.mean("comparisons", strategy="RTST") != varied_rows.mean(
        "comparisons", strategy="RTST"
    )


def test_the_lead_of_splits_is_shown_by_the_number_of_samples():
    rows = [
        {"split": split, "n_train": n, "seed": seed, "boundary": 1.0, "accuracy": accuracy}
        for n, svm in ((20, 0.7), (70, 0.85), (200, 0.95))
        for split, accuracy in {"axis": 0.9, "SVM": svm, "NCM": 0.95}.items()
        for seed in SEEDS
    ]
    *_, svm, ncm = fig2.EXPERIMENT.judge(Table(rows))
    assert (svm.agrees, ncm.agrees, ncm.why) == (False, True, "")
    assert "-20.0 with 20, -5.0 with 70, +5.0 with 200 samples" in svm.reason


def test_the_picture_of_maps_names_axes_and_classes(tmp_path):
    experiment = smaller(fig2.EXPERIMENT, n_trees=2)
    run_experiment(
        experiment, tmp_path, ExperimentContext(experiment.sources, quick=True, n_jobs=1)
    )
    words = svg_words(tmp_path / "report-fig2.svg")
    assert {"first feature", "second feature", "class 0", "class 5"} <= words
    assert (tmp_path / "report-fig2.svg").stat().st_size < 300_000


def test_a_staircase_is_longer_than_a_straight_line():
    n = 200
    x, y = np.meshgrid(np.arange(n), np.arange(n))
    everywhere = np.ones((n, n), bool)
    line = decision_maps.boundary_length((x > y).astype(int), everywhere)
    stairs = decision_maps.boundary_length((x // 20 > y // 20).astype(int), everywhere)
    assert line == pytest.approx(np.sqrt(2), rel=0.12)
    assert stairs == pytest.approx(1.8, rel=0.1)


def test_borders_far_from_samples_do_not_count():
    answers = np.repeat([[0], [1]], 50, axis=0) * np.ones((100, 100), int)
    assert decision_maps.boundary_length(answers, np.zeros((100, 100), bool)) == 0


def test_maps_are_unpacked_as_they_were():
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 3))
    assert np.array_equal(decision_maps.unpack(decision_maps.pack(pixels), (4, 5, 3)), pixels)
