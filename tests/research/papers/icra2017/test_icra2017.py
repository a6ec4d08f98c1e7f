"""Camoriano 2017: a new class with few examples, and the time of an update."""

from dataclasses import replace

import numpy as np
import pytest

from evergrow.research import (
    Dataset,
    ExperimentContext,
    Table,
    digits,
    find_experiments,
    mixture,
    run_experiment,
)
from evergrow.research.experiments.pages import format_published
from evergrow.research.papers.icra2017 import (
    fig1,
    fig2,
    protocol,
    table1,
)
from tests.research.papers.checks import (
    check_resuming,
    check_verdicts,
    save_features,
    svg_words,
)

EXPERIMENTS = {experiment.name: experiment for experiment in find_experiments(["icra2017"])}


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """A user's own small file."""
    path = tmp_path_factory.mktemp("data") / "own.npz"
    return save_features(path, mixture(5, 6, 30, 10, distance=2.0))


LABELS = {
    "icra2017-fig1": {"first feature", "Bayes, standard loss", "least squares, recoded"},
    "icra2017-table1": {"examples of the new class", "accuracy, all classes, %", "naive"},
    "icra2017-fig2": {"accuracy, new class, %", "accuracy, known classes, %", "recoding"},
    "icra2017-fig3": {"examples of the new class", "naive", "recoded"},
    "icra2017-update-time": {"examples learnt before", "one more example, ms"},
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_drawn_from_the_users_own_features(name, features, tmp_path):
    experiment = EXPERIMENTS[name]
    if name == "icra2017-fig1":
        shared = {"seed": 0, "n_samples": 300, "width": fig1.WIDTH}
        small = [{**shared, "gamma": g} for g in fig1.GAMMAS]
        experiment = replace(experiment, runs=lambda context: small)
    # The first figure makes its own data.
    data = features if experiment.sources else None
    outcome = run_experiment(
        experiment, tmp_path, ExperimentContext(experiment.sources, quick=True, data=data)
    )
    assert outcome.findings
    assert svg_words(tmp_path / f"{name}.svg") >= LABELS[name]


def test_a_run_that_was_stopped_gives_the_table_of_one_that_was_not(features, tmp_path):
    experiment = EXPERIMENTS["icra2017-fig3"]
    two_seeds = ExperimentContext(experiment.sources, quick=True, data=features, n_seeds=2)
    check_resuming(experiment, tmp_path, lambda: two_seeds, 1)


def test_the_numbers_of_table_1_are_those_of_the_paper():
    printed = Table(table1.EXPERIMENT.published)
    assert len(printed) == 51
    at_ten = printed.where(n_new=10, data="mnist")
    assert at_ten.mean("new_class", method="recoded") == pytest.approx(0.251)
    assert at_ten.mean("total", method="rebalanced") == pytest.approx(0.836)


def test_the_numbers_of_robots_name_their_data():
    printed = Table(table1.EXPERIMENT.published)
    icub = printed.where(data="cifar100_efflite0_pca256", n_new=500)
    assert icub.mean("new_class", method="naive") == pytest.approx(0.893)
    assert icub.values("paper's data") == ["iCubWorld28, fc7 of CaffeNet"]
    rgbd = printed.where(data="caltech101_efflite0_224", n_new=1, method="rebalanced")
    assert rgbd.mean("new_class") == pytest.approx(0.62)


def test_the_papers_digits_are_not_compared_with_others():
    context = ExperimentContext(table1.EXPERIMENT.sources, quick=True)
    assert context.dataset("mnist").name not in Table(table1.EXPERIMENT.published).values("data")


def test_digits_become_grey_values_from_minus_one_to_one():
    X = ExperimentContext(protocol.SOURCES, quick=True).dataset("mnist").X_train
    assert (X.min(), X.max()) == (-1, 1)


def test_features_that_are_not_pixels_are_unchanged():
    data = mixture(3, 4, 5)
    assert protocol.SOURCES["mnist"].prepare(data) is data


def test_the_new_class_comes_only_as_the_new_one():
    setup = protocol.Setup(10, 20, 5, 0.7)
    task = protocol.draw_task(digits(), setup, 8, seed=0)
    assert 8 not in task.known[1]
    assert set(task.new[1].tolist()) == {8}
    assert np.bincount(task.test[1]).tolist() == [5] * 10
    assert task.counts((1, 5, 50)) == [1, 5]


def test_one_class_alone_is_refused():
    X, y = np.eye(4, dtype=np.float32), np.zeros(4, int)
    with pytest.raises(ValueError, match="has one class"):
        protocol.draw_task(Dataset("one", X, y, X, y), protocol.SETUPS["mnist"], 0, seed=0)


def test_changing_the_recoding_of_one_model_is_as_training_with_it():
    from evergrow import RLSClassifier

    task = protocol.draw_task(digits(), protocol.Setup(10, 60, 20, 0.7), 8, seed=0)
    ((_, model),) = protocol.learn_new_class(task, (5,), seed=0)
    other = RLSClassifier(regularization=model.regularization_, recoding=0.7, scoring="regression")
    model.set_params(recoding=0.7, regularization=model.regularization_)
    other.fit(*task.with_new(5))
    # Held-out examples are learnt in the end, so both have seen the same.
    assert np.mean(model.predict(task.test[0]) == other.predict(task.test[0])) > 0.99


@pytest.mark.parametrize("gamma", fig1.GAMMAS)
def test_on_the_exact_boundary_both_classes_are_equally_likely(gamma):
    circle = fig1.boundary(gamma, rebalanced=False)
    points = circle.at(np.full(7, circle.radius))

    def density(gaussian):
        square = ((points - np.array(gaussian.mean)) ** 2).sum(axis=1)
        return np.exp(-square / (2 * gaussian.deviation**2)) / gaussian.deviation**2

    ratio = gamma * density(fig1.COMMON) / ((1 - gamma) * density(fig1.RARE))
    assert ratio == pytest.approx(1)


def test_the_rebalanced_boundary_does_not_depend_on_shares():
    assert fig1.boundary(0.5, rebalanced=True) == fig1.boundary(0.9, rebalanced=True)


def rows_of_fig1(rare_radius, recoded=1.0):
    radius = {"Bayes, rebalanced": 1.0, "rebalanced": 1.0, "recoded": recoded}
    return Table(
        {"gamma": gamma, "method": method, "radius": r, "rare": r, "common": 0.9}
        | {"width": width, "n_samples": n, "seed": seed}
        for gamma in fig1.GAMMAS
        for method in fig1.LOOKS
        for r in [radius.get(method, rare_radius(gamma))]
        for width, n in ((fig1.WIDTH, 400), (fig1.WIDTH, 100), (0.5, 400))
        for seed in (0, 1, 2)
    )


def rows_of_table1(naive, recoded, rebalanced=0.4):
    new = {"naive": naive, "recoded": recoded, "rebalanced": rebalanced, "auto": recoded}
    return Table(
        {"data": "mnist", "n_new": n, "method": m, "seed": s, "new_class": a, "total": 0.8 + a / 10}
        for n in (1, 5, 10)
        for m, a in new.items()
        for s in (0, 1, 2)
    )


def varied_rows(rows, varied, values):
    """The same rows as measurements of what a claim depends on."""
    return [{**row, "varied": varied, "value": value} for value in values for row in rows]


def test_reasons_name_what_was_varied():
    rows = rows_of_table1(0.0, 0.45).rows
    judged = table1.EXPERIMENT.judge(Table(rows + varied_rows(rows, "penalty", (0.1, 1.0))))
    assert judged[3].agrees is False
    assert "0.1, 1 times the mean square" in judged[3].reason
    assert "-5.0 points" in judged[3].reason
    assert judged[0].reason == judged[1].reason == ""


def test_features_explain_a_class_that_is_not_ignored():
    rows = rows_of_table1(0.5, 0.45).rows
    few = varied_rows(rows_of_table1(0.0, 0.3).rows, "n_components", (16,))
    ignored = table1.EXPERIMENT.judge(Table(rows + few))[0]
    assert ignored.agrees is False
    assert "0, 50 % at 10 examples" in ignored.reason


def test_other_new_classes_explain_a_total_that_does_not_rise():
    rows = [{**row, "others": 0.8} for row in rows_of_table1(0.5, 0.45).rows]
    other = [{**row, "others": 0.8} for row in rows_of_table1(0.0, 0.3).rows]
    total = table1.EXPERIMENT.judge(Table(rows + varied_rows(other, "place", (3, 4))))[2]
    assert total.agrees is False
    assert "With 2 other classes as the new one, each in turn" in total.reason
    assert "the total by +3.0 points" in total.reason


def test_varied_settings_are_not_judged():
    rows = rows_of_table1(0.0, 0.3).rows
    other = varied_rows(rows_of_table1(0.9, 0.1).rows, "recoding", (0.9,))
    judged = table1.EXPERIMENT.judge(Table(rows + other))
    assert judged == table1.EXPERIMENT.judge(Table(rows))


def test_varied_settings_are_not_shown_next_to_the_papers_numbers():
    rows = [{**row, "others": 0.8} for row in rows_of_table1(0.0, 0.3).rows]
    other = varied_rows(rows, "penalty", (0.1,))
    page = format_published(table1.EXPERIMENT, Table(rows + [{**r, "total": 0.1} for r in other]))
    start = "| MNIST, new examples: 10, recoded, the paper's data: MNIST |"
    assert f"{start} accuracy on all classes | 81 % | 83.0 ± 0.0 %" in page


def test_principal_components_keep_the_most():
    data = mixture(5, 6, 30, 10, distance=2.0)
    fewer = table1._principal_components(data, 2)
    assert fewer.X_train.shape == (150, 2)
    assert fewer.X_test.shape == (50, 2)
    deviations = fewer.X_train.std(axis=0)
    assert deviations[0] >= deviations[1] >= data.X_train.std(axis=0).min()


def test_a_penalty_selected_once_stays():
    task = protocol.draw_task(digits(), protocol.Setup(10, 60, 20, 0.7), 8, seed=0)
    found = protocol.learn_new_class(task, (1, 5, 20), seed=0, select_once=True)
    assert len({model.regularization_ for _, model in found}) == 1


def test_a_class_as_large_as_the_others_is_not_judged():
    rows = rows_of_table1(0.0, 0.3).rows
    level = [{**row, "n_new": 500, "new_class": 0.9, "total": 0.9} for row in rows]
    helps = table1.EXPERIMENT.judge(Table(rows + level))[1]
    assert helps.agrees is True
    assert "smallest with 1 example:" in helps.here


def test_own_data_stand_neither_for_digits_nor_for_objects(tmp_path):
    path = save_features(tmp_path / "mnist.npz", mixture(5, 6, 30, 10, distance=2.0))
    experiment = table1.EXPERIMENT
    outcome = run_experiment(
        experiment, tmp_path / "results", ExperimentContext(experiment.sources, data=path)
    )
    assert outcome.table.values("data") == ["mnist, own data"]
    assert not any("rebalancing" in finding.claim for finding in outcome.findings)
    assert "paper" not in svg_words(tmp_path / "results" / "icra2017-table1.svg")


def rows_of_fig2(new, others):
    return Table(
        {"recoding": r, "n_new": 5, "new_class": new(r), "others": others(r), "seed": s}
        for r in fig2.RECODINGS
        for s in (0, 1, 2)
    )


def test_fig_1_shows_both_centres():
    (left, right), (low, high) = fig1.FRAME
    for gaussian in (fig1.COMMON, fig1.RARE):
        x, y = gaussian.mean
        assert left + gaussian.deviation < x < right - gaussian.deviation
        assert low + gaussian.deviation < y < high - gaussian.deviation


def rows_of_time(growth):
    slope = {"incremental": growth, "paper's update": 1.0, "from scratch": 50.0}
    return Table(
        {"n_before": n, "method": m, "same_answers": 1.0, "seconds": (s if n > 1000 else 1) * 0.1}
        | {"seed": seed}
        for n in (1000, 50000)
        for m, s in slope.items()
        for seed in (0, 1, 2)
    )


def rows_of_fig3(others, new):
    means = {"naive": (0.0, 0.8, 0.7), "recoded": (new, others, 0.75)}
    return Table(
        {"data": "d", "n_new": 1, "method": m, "seed": seed}
        | {"new_class": a, "others": b, "total": c}
        for m, (a, b, c) in means.items()
        for seed in (0, 1, 2)
    )


CASES = {
    "fig1: the standard boundary gives way": (rows_of_fig1(lambda gamma: 1.5 - gamma), "+++++"),
    "fig1: the standard boundary stays": (rows_of_fig1(lambda gamma: 1.0), ".-..."),
    "fig1: recoding misses": (rows_of_fig1(lambda gamma: 1.5 - gamma, 1.2), "+++-+"),
    "table1: recoding finds what naive ignores": (rows_of_table1(0.0, 0.3), "++++"),
    "table1: naive is as good": (rows_of_table1(0.5, 0.45), "----"),
    "table1: recoding does not lead where the class is rarest": (
        [{**r, "new_class": 0.0} if r["n_new"] == 1 else r for r in rows_of_table1(0, 1)],
        ".-..",
    ),
    "fig2: a trade-off": (rows_of_fig2(lambda r: r, lambda r: 0.8 - 0.01 * r), "+++"),
    "fig2: nothing to gain": (rows_of_fig2(lambda r: 0.1, lambda r: 0.8 - 0.2 * r), "-+-"),
    "fig2: the new class loses": (rows_of_fig2(lambda r: 0.5 - r / 10, lambda r: 0.8), "---"),
    "fig3: much on the new class for little": (rows_of_fig3(0.79, 0.5), "+"),
    "fig3: other classes pay": (rows_of_fig3(0.6, 0.5), "-"),
    "fig3: little on the new class": (rows_of_fig3(0.79, 0.03), "-"),
    "update-time: constant": (rows_of_time(1.2), "+.."),
    "update-time: growing": (rows_of_time(3.0), "-.."),
}


@pytest.mark.parametrize("case", CASES)
def test_verdicts(case):
    check_verdicts(EXPERIMENTS[f"icra2017-{case.partition(':')[0]}"], *CASES[case])
