"""The measurements behind the advice which learner to take."""

import csv

import numpy as np
import pytest

from evergrow.research import ExperimentContext, Table, find_experiments, mixture, run_experiment
from evergrow.research.papers.guide.images_per_class import few_of_each
from evergrow.research.papers.guide.learners import LEARNERS, best

NAMES = [experiment.name for experiment in find_experiments(["guide"])]


def _tiny(experiment):
    """A quick context over data so small that a test can afford them."""
    sources = {
        name: type(source)(None, lambda: mixture(10, 8, 25, 5))
        for name, source in experiment.sources.items()
    }
    return ExperimentContext(sources, quick=True, n_jobs=1)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "guide-many-classes"])
def test_every_learner_is_measured(name, tmp_path):
    (experiment,) = find_experiments([name])
    outcome = run_experiment(experiment, tmp_path, _tiny(experiment))
    assert set(outcome.table.values("learner")) == set(LEARNERS)
    assert outcome.findings


def test_the_same_table_comes_whatever_the_number_of_threads(tmp_path):
    (experiment,) = find_experiments(["guide-nightly"])
    tables = []
    for jobs in (1, 2):
        context = _tiny(experiment)
        context.n_jobs = jobs
        run_experiment(experiment, tmp_path / str(jobs), context)
        tables.append((tmp_path / str(jobs) / f"{experiment.name}.csv").read_bytes())
    assert tables[0] == tables[1]


def test_times_stand_in_a_table_of_their_own(tmp_path):
    (experiment,) = find_experiments(["guide-nightly"])
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
    (experiment,) = find_experiments(["guide-images-per-class"])
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
