"""Every figure of Ristin et al. 2014 is measured, drawn and judged."""

import csv

import numpy as np
import pytest

from evergrow.research import Dataset, ExperimentContext, Source, find_experiments, run_experiment
from evergrow.research.papers.cvpr2014.protocol import forest
from tests.research.papers.checks import check_resuming, find, save_features, svg_words

from .made_up import tiny, tiny_context

NAMES = [e.name for e in find_experiments(["cvpr2014"])]


@pytest.fixture(scope="module", params=NAMES)
def result(request, tmp_path_factory):
    experiment = find(request.param)
    folder = tmp_path_factory.mktemp(experiment.name)
    return folder, run_experiment(experiment, folder, tiny_context(experiment))


def test_rows_have_the_declared_columns_and_unique_keys(result):
    folder, outcome = result
    experiment = outcome.experiment
    with (folder / f"{experiment.name}.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert [*rows[0]] == [*experiment.columns]
    assert len({tuple(row[key] for key in experiment.keys) for row in rows}) == len(rows)
    assert all(0 <= float(row["accuracy"]) <= 1 for row in rows)


def test_every_finding_ends_with_numbers_that_were_measured(result):
    _, outcome = result
    assert outcome.findings
    assert not any("nan" in finding.here for finding in outcome.findings)


def test_pictures_name_their_axes_and_curves(result):
    folder, outcome = result
    words = " ".join(svg_words(folder / f"{outcome.experiment.name}.svg"))
    assert "classes" in words or "share" in words or "samples in a leaf" in words
    assert "accuracy" in words
    assert "RUST" in words or "square root" in words or "at a time" in words or "at 24" in words


def test_an_experiment_that_was_stopped_ends_with_the_same_table(tmp_path):
    experiment = find("cvpr2014-fig9")
    check_resuming(experiment, tmp_path, lambda: tiny_context(experiment), 2)


def test_a_full_run_has_five_seeds_fifty_trees_and_goes_from_10_to_100_classes():
    experiment = find("cvpr2014-fig5")
    context = ExperimentContext(experiment.sources)
    runs = experiment.runs(context)
    assert {run["seed"] for run in runs} == set(range(5))
    assert {(run["initial"], run["end"]) for run in runs} == {(10, 100), (3, 50)}
    assert forest(context, 0).n_estimators == 50


def _with_classes(n):
    return ExperimentContext(
        {"features": Source(None, lambda: tiny().of_classes(range(n)))}, quick=True
    )


@pytest.mark.parametrize("number", [4, 5, 6, 7, 8])
def test_data_without_a_class_to_come_are_refused_before_any_run(number):
    experiment = find(f"cvpr2014-fig{number}")
    with pytest.raises(ValueError, match="has 3 classes; this experiment begins with 3 and needs"):
        experiment.runs(_with_classes(3))


@pytest.mark.parametrize("name", NAMES)
def test_data_of_one_class_are_refused_before_any_run(name, tmp_path):
    save_features(tmp_path / "one.npz", tiny().of_classes([0]))
    experiment = find(name)
    with pytest.raises(ValueError, match="has 1 class; at least 2 are needed"):
        experiment.runs(ExperimentContext(experiment.sources, data=tmp_path / "one.npz"))


def test_all_classes_at_once_must_be_more_than_one():
    with pytest.raises(ValueError, match="begins with 10 and needs at least 12"):
        find("cvpr2014-fig9").runs(_with_classes(11))


@pytest.mark.parametrize("name", NAMES)
def test_settings_that_twelve_classes_do_not_reach_are_left_out(name):
    runs = find(name).runs(_with_classes(12))
    grown = [run for run in runs if run.get("strategy", "retrained") != "retrained"]
    assert all(run["initial"] + run.get("chunk", 1) <= run["end"] == 12 for run in grown)
    assert {run.get("panel", "a") for run in runs} <= {"a", "b", "times"}


def test_chunks_that_twelve_classes_do_not_fill_are_neither_measured_nor_judged(tmp_path):
    outcome = run_experiment(find("cvpr2014-fig9"), tmp_path, _with_classes(12))
    assert outcome.table.where(strategy="rust").values("chunk") == [1, 2]
    assert [finding.agrees for finding in outcome.findings] == [None, None]


def test_images_in_place_of_features_are_refused():
    paths = np.array(["a.jpg", "b.jpg"])
    pictures = Dataset("pictures", paths, np.arange(2), paths, np.arange(2))
    with pytest.raises(ValueError, match="'pictures' is not a table of features"):
        find("cvpr2014-fig5").sources["features"].prepare(pictures)


def test_words_enter_as_square_roots_of_their_counts():
    X, y = np.array([[4.0, 9.0]]), np.zeros(1)
    prepared = find("cvpr2014-fig5").sources["words"].prepare(Dataset("words", X, y, X, y))
    assert prepared.X_train.tolist() == [[2.0, 3.0]]
