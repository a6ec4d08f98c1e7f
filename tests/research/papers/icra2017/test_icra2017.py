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
        small = [{"gamma": g, "seed": 0, "n_samples": 300} for g in fig1.GAMMAS]
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
    context = ExperimentContext(experiment.sources, quick=True, data=features)
    check_resuming(experiment, tmp_path, lambda: context, 2)


def test_the_numbers_of_table_1_are_those_of_the_paper():
    printed = Table(table1.EXPERIMENT.published)
    assert len(printed) == 15
    at_ten = printed.where(n_new=10, data="mnist")
    assert at_ten.mean("new_class", method="recoded") == pytest.approx(0.251)
    assert at_ten.mean("total", method="rebalanced") == pytest.approx(0.836)


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


def rows_of_fig1(rare_radius):
    return Table(
        {"gamma": gamma, "method": method, "radius": radius, "rare": radius, "common": 0.9}
        for gamma in fig1.GAMMAS
        for method in fig1.LOOKS
        for radius in [rare_radius(gamma) if method in ("Bayes", "naive") else 1.0]
    )


def rows_of_table1(naive, recoded, rebalanced=0.4):
    new = {"naive": naive, "recoded": recoded, "rebalanced": rebalanced, "auto": recoded}
    return Table(
        {"data": "mnist", "n_new": n, "method": m, "seed": s, "new_class": a, "total": 0.8 + a / 10}
        for n in (1, 5, 10)
        for m, a in new.items()
        for s in (0, 1, 2)
    )


def test_a_class_as_large_as_the_others_is_not_judged():
    rows = rows_of_table1(0.0, 0.3).rows
    level = [{**row, "n_new": 500, "new_class": 0.9, "total": 0.9} for row in rows]
    helps = table1.EXPERIMENT.judge(Table(rows + level))[1]
    assert helps.agrees is True
    assert "up to 10 is" in helps.here


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
        for n in (1000, 50000)
        for m, s in slope.items()
    )


def rows_of_fig3(others, new):
    means = {"naive": (0.0, 0.8, 0.7), "recoded": (new, others, 0.75)}
    return Table(
        {"data": "d", "new": label, "n_new": 1, "method": m, "seed": 0}
        | {"new_class": a, "others": b, "total": c}
        for m, (a, b, c) in means.items()
        for label in "abc"
    )


CASES = {
    "fig1: the standard boundary gives way": (rows_of_fig1(lambda gamma: 1.5 - gamma), "+++++"),
    "fig1: the standard boundary stays": (rows_of_fig1(lambda gamma: 1.0), ".-..."),
    "table1: recoding finds what naive ignores": (rows_of_table1(0.0, 0.3), "++++"),
    "table1: naive is as good": (rows_of_table1(0.5, 0.45), "----"),
    "table1: recoding does not lead where the class is rarest": (
        [{**r, "new_class": 0.0} if r["n_new"] == 1 else r for r in rows_of_table1(0, 1)],
        ".?..",
    ),
    "fig2: a trade-off": (rows_of_fig2(lambda r: r, lambda r: 0.8 - 0.01 * r), "+++"),
    "fig2: nothing to gain": (rows_of_fig2(lambda r: 0.1, lambda r: 0.8 - 0.2 * r), "?+-"),
    "fig2: the new class loses": (rows_of_fig2(lambda r: 0.5 - r / 10, lambda r: 0.8), "-?-"),
    "fig3: much on the new class for little": (rows_of_fig3(0.79, 0.5), "+"),
    "fig3: other classes pay": (rows_of_fig3(0.6, 0.5), "-"),
    "fig3: little on the new class": (rows_of_fig3(0.79, 0.03), "-"),
    "update-time: constant": (rows_of_time(1.2), "+.."),
    "update-time: growing": (rows_of_time(3.0), "-.."),
}


@pytest.mark.parametrize("case", CASES)
def test_verdicts(case):
    check_verdicts(EXPERIMENTS[f"icra2017-{case.partition(':')[0]}"], *CASES[case])
