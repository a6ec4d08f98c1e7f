"""The measurements behind the advice which learner to take."""

import csv

import numpy as np
import pytest

from evergrow import RLSClassifier
from evergrow.research import ExperimentContext, Table, mixture, run_experiment
from evergrow.research.papers.guide import forest_features, heads
from evergrow.research.papers.guide.images_per_class import few_of_each
from evergrow.research.papers.guide.learners import LEARNERS, best
from tests.research.papers.checks import check_verdicts, find


def _tiny(experiment):
    """A quick context over data so small that a test can afford them."""
    sources = {
        name: type(source)(None, lambda: mixture(10, 8, 25, 5))
        for name, source in experiment.sources.items()
    }
    return ExperimentContext(sources, quick=True, n_jobs=1)


@pytest.mark.parametrize("name", ["images-per-class", "update-time", "nightly"])
def test_every_learner_is_measured(name, tmp_path):
    experiment = find(f"guide-{name}")
    outcome = run_experiment(experiment, tmp_path, _tiny(experiment))
    assert set(outcome.table.values("learner")) >= set(LEARNERS)
    assert outcome.findings


def test_a_forest_is_measured_with_every_kind_of_features(tmp_path):
    experiment = find("guide-forest-features")
    outcome = run_experiment(experiment, tmp_path, _tiny(experiment))
    assert set(outcome.table.values("learner")) == set(forest_features.NAMES)
    assert outcome.table.values("initial") == [0, 3]
    assert len(outcome.findings) == 2


def test_the_same_table_comes_whatever_the_number_of_threads(tmp_path):
    experiment = find("guide-nightly")
    tables = []
    for jobs in (1, 2):
        context = _tiny(experiment)
        context.n_jobs = jobs
        run_experiment(experiment, tmp_path / str(jobs), context)
        tables.append((tmp_path / str(jobs) / f"{experiment.name}.csv").read_bytes())
    assert tables[0] == tables[1]


def test_times_stand_in_a_table_of_their_own(tmp_path):
    experiment = find("guide-nightly")
    run_experiment(experiment, tmp_path, _tiny(experiment))
    with (tmp_path / "guide-nightly-timings.csv").open() as file:
        assert all(float(row["seconds"]) > 0 for row in csv.DictReader(file))


def test_few_samples_of_each_class_are_drawn_by_the_seed():
    data = mixture(4, 3, 10)
    drawn = [few_of_each(data, 2, seed) for seed in (0, 0, 1)]
    assert np.bincount(drawn[0].y_train).tolist() == [2, 2, 2, 2]
    assert np.array_equal(drawn[0].X_train, drawn[1].X_train)
    assert not np.array_equal(drawn[0].X_train, drawn[2].X_train)


def test_the_best_is_that_with_the_highest_mean():
    rows = [{"learner": name, "accuracy": value} for name, value in (("a", 0.1), ("b", 0.3))]
    assert best(Table([*rows, {"learner": "b", "accuracy": 0.1}]), ("a", "b", "c")) == ("b", 0.2)


def test_advice_differs_where_the_numbers_do():
    experiment = find("guide-images-per-class")
    rows = [
        {
            "data": "objects",
            "seed": 0,
            "learner": name,
            "images": 1,
            "accuracy": 0.9 if "forest" in name else 0.1,
        }
        for name in LEARNERS
    ]
    assert [finding.agrees for finding in experiment.judge(Table(rows))] == [False]


@pytest.mark.parametrize("name", ["first-pictures", "all-pictures"])
def test_every_head_is_measured_and_stands_in_the_table_of_the_page(name, tmp_path):
    experiment = find(f"guide-{name}")
    outcome = run_experiment(experiment, tmp_path, _tiny(experiment))
    random = {heads.OURS_RANDOM, heads.OURS_AUTO}
    names = {*heads.HEADS} - (random if name == "first-pictures" else set())
    assert names <= set(outcome.table.values("learner"))
    page = (tmp_path / f"guide-{name}.md").read_text()
    assert all(f"| {each} |" in page for each in names)
    assert all(0 < row["accuracy"] <= 1 for row in outcome.table)


def test_the_best_penalty_in_hindsight_is_not_below_any_of_its_grid():
    data = few_of_each(mixture(8, 20, 30, 30), 4, seed=0)
    unit = data.X_train.var(axis=0).mean() * len(data.y_train)
    single = [
        RLSClassifier(regularization=penalty * unit, recoding=0.0)
        .fit(data.X_train, data.y_train)
        .score(data.X_test, data.y_test)
        for penalty in heads.PENALTIES[::4]
    ]
    best = (heads.predict(heads.BEST, data, 0, 0) == data.y_test).mean()
    assert best >= max(single) > min(single)


def _accuracies(images, draws=3, **others):
    """Rows in which every head has 0.5 and those named another accuracy."""
    names = [heads.BEST, *heads.HEADS]
    found = {name: others.get(name.partition(" ")[0], 0.5) for name in names}
    return [
        {"data": "birds", "images": images, "learner": name, "seed": seed, "accuracy": accuracy}
        for name, accuracy in found.items()
        for seed in range(draws)
    ]


@pytest.mark.parametrize(
    ("images", "others", "expected"),
    [
        (1, {"best": 0.515}, "++-"),
        (3, {"best": 0.515}, "-+-"),
        (3, {"best": 0.505, "class": 0.51}, "+--"),
        (3, {"least": 0.6}, "+++"),
        (3, {"least": 0.6, "RanPAC": 0.65}, "++-"),
    ],
)
def test_the_default_is_judged_by_the_best_penalty_and_by_its_peers(images, others, expected):
    check_verdicts(find("guide-first-pictures"), _accuracies(images, **others), expected)


@pytest.mark.parametrize(("ranpac", "expected"), [(0.4, "+"), (0.5, "+"), (0.6, "-")])
def test_all_pictures_are_judged_by_ranpac(ranpac, expected):
    check_verdicts(find("guide-all-pictures"), _accuracies("all", RanPAC=ranpac), expected)


def test_a_new_class_is_measured_next_to_the_others(tmp_path):
    experiment = find("guide-new-class")
    outcome = run_experiment(experiment, tmp_path, _tiny(experiment))
    assert outcome.table.values("images") == [1, 3, 10]
    assert "| least squares |" in (tmp_path / "guide-new-class.md").read_text()


@pytest.mark.parametrize(("others", "expected"), [(0.5, "+"), (0.4, "-")])
def test_a_new_class_must_not_cost_the_others(others, expected):
    rows = [
        {"learner": name, "images": 3, "seed": seed, "new_class": new, "others": old}
        for name, new, old in (
            ("least squares", 0.6, others),
            ("least squares, choices of the paper", 0.5, 0.5),
        )
        for seed in range(3)
    ]
    check_verdicts(find("guide-new-class"), rows, expected)


@pytest.mark.parametrize(("stages", "expected"), [(0.5, "+"), (0.4, "-")])
def test_earlier_stages_must_not_cost_accuracy(stages, expected):
    rows = [
        {"learner": name, "images": 5, "seed": seed, "accuracy": accuracy}
        for name, accuracy in (
            ("with earlier stages (auto)", stages),
            ("output alone, scaled to length one", 0.5),
            ("output alone (embed)", 0.5),
        )
        for seed in range(3)
    ]
    check_verdicts(find("guide-photographs"), rows, expected)
