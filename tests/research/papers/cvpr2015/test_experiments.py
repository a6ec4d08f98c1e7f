"""The tables and figures of the paper on subcategories."""

import pytest

from evergrow.research import (
    PAPERS,
    ExperimentContext,
    Source,
    Table,
    digits,
    mixture,
    run_experiment,
)
from evergrow.research.experiments.pages import format_published
from evergrow.research.papers.cvpr2015 import evaluation
from evergrow.research.papers.cvpr2015.data import OF_IMAGES, further_seeds, settings, sources
from evergrow.research.papers.cvpr2015.evaluation import relative_to
from tests.research.papers.checks import check_resuming, find, save_features, svg_words

NAMES = next(paper.names for paper in PAPERS if paper.name == "cvpr2015")


def tiny():
    return mixture(6, 8, 30, 10, distance=0.8, n_groups=2)


def few_digits():
    return digits().per_class(20, 5)


def small_context(experiment, **more):
    sources = {
        name: Source(None, few_digits if name in OF_IMAGES else tiny) for name in experiment.sources
    }
    return ExperimentContext(sources, **more)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """Two trees and one seed in place of what a quick run has."""

    def few(name, *args, **more):
        return evaluate(name, *args, **(more | {"n_trees": 2}))

    evaluate = evaluation.evaluate
    monkeypatch.setattr(evaluation, "evaluate", few)


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_is_measured_drawn_and_judged(name, tmp_path):
    experiment = find(name)
    outcome = run_experiment(
        experiment, tmp_path, small_context(experiment, quick=True, n_seeds=1, n_jobs=1)
    )
    assert outcome.findings
    accuracies = outcome.table.column("accuracy")
    assert 0.3 < accuracies.mean() < 1.0
    texts = svg_words(tmp_path / f"{name}.svg")
    assert any("accuracy" in text for text in texts)
    if experiment.published:
        assert any(text.endswith("paper") or text.startswith("paper, ") for text in texts)
        assert "Published and measured numbers" in (tmp_path / f"{name}.md").read_text()


def test_a_run_that_was_stopped_gives_the_same_table(tmp_path):
    experiment = find("cvpr2015-table3")
    # The number of threads must not matter either.
    threads = iter((1, 1, 2))

    def make_context():
        return small_context(experiment, quick=True, n_seeds=1, n_jobs=next(threads))

    check_resuming(experiment, tmp_path, make_context, 2)


def test_own_features_without_coarse_classes_will_do(tmp_path):
    path = save_features(tmp_path / "mine.npz", tiny())
    experiment = find("cvpr2015-table5")
    context = ExperimentContext(experiment.sources, quick=True, data=path, n_seeds=1, n_jobs=1)
    outcome = run_experiment(experiment, tmp_path / "out", context)
    assert outcome.table.values("data") == ["mine"]


def test_built_in_data_are_not_measured_under_several_names():
    context = ExperimentContext(sources("features", "words", "birds"), quick=True, n_seeds=2)
    assert [run["data"] for run in settings(context)] == ["features", "features"]


def test_built_in_images_are_measured_besides_built_in_features():
    context = ExperimentContext(sources("birds", "features", "characters"), quick=True, n_seeds=1)
    assert [run["data"] for run in settings(context)] == ["birds", "characters"]


def test_further_seeds_are_of_full_runs_with_the_default_number_only(tmp_path, monkeypatch):
    (tmp_path / "cifar100_words1000.npz").touch()
    monkeypatch.setenv("EVERGROW_DATA", str(tmp_path))

    def seeds(**options):
        context = ExperimentContext(sources("features", "words"), **options)
        return [run["seed"] for run in further_seeds(context, 7, ["features", "words"])]

    assert seeds() == [5, 6]
    assert seeds(quick=True) == seeds(n_seeds=3) == seeds(data="mine.npz") == []


def test_samples_are_cut_of_our_files_only(tmp_path, monkeypatch):
    (tmp_path / "cifar100_words1000.npz").touch()
    monkeypatch.setenv("EVERGROW_DATA", str(tmp_path))
    (run,) = settings(ExperimentContext(sources("features", "words"), n_seeds=1))
    assert (run["data"], run["n_train"], run["n_test"]) == ("words", 150, 50)
    (own,) = settings(ExperimentContext(sources("words"), n_seeds=1, data="mine.npz"))
    assert (own["n_train"], own["n_test"]) == (None, None)


@pytest.mark.parametrize(
    ("name", "where", "column", "expected"),
    [
        ("table1", {"method": "svm", "metric": "all"}, "accuracy", 0.176),
        ("table1", {"method": "regularised", "features": "network"}, "accuracy", 0.7418),
        ("table1", {"method": "svm", "features": "network"}, "accuracy", 0.7167),
        ("table1", {"method": "class means", "features": "network"}, "accuracy", 0.6602),
        ("table2", {"method": "nn-h", "metric": "fine"}, "accuracy", 0.1955),
        ("table3", {"method": "nn-h", "fine": 0.1}, "accuracy", 0.1471),
        ("table4", {"method": "joint", "coarse": 0.2}, "accuracy", 0.168),
        ("table5", {"method": "coarse"}, "coarse_accuracy", 0.2454),
        (
            "table6",
            {"method": "nn", "fine": 0.5, "features": "Fisher vectors"},
            "accuracy",
            0.4226,
        ),
        ("fig3", {"method": "hierarchical", "means": "both"}, "accuracy", 0.181),
        ("guesses", {"guess": "nn-discard"}, "accuracy", 0.1703),
    ],
)
def test_what_the_paper_prints(name, where, column, expected):
    published = Table(find(f"cvpr2015-{name}").published)
    assert published.mean(column, **where) == pytest.approx(expected)


def test_numbers_of_a_network_are_distinguished_from_those_of_visual_words():
    found = find("cvpr2015-table1")
    settings = [{key: row[key] for key in found.keys if key in row} for row in found.published]
    text = format_published(found, Table([{**each, "accuracy": 0.5} for each in settings]))
    assert "| without a metric, SVM, network | accuracy | 71.67 % |" in text
    assert "| without a metric, SVM, visual words | accuracy | 18.11 % |" in text


def test_relations_are_those_that_the_paper_prints_in_brackets():
    published = Table(find("cvpr2015-table3").published)
    in_brackets = {("stacked", 0.1): 1.07, ("hierarchical", 0.2): 1.13, ("nn-h", 0.5): 1.09}
    for (method, share), expected in in_brackets.items():
        found = published.mean("relative", method=method, fine=share)
        assert found == pytest.approx(expected, abs=0.005)


def test_relative_rows_have_the_baseline_of_their_own_seed():
    rows = [
        {"method": method, "seed": seed, "accuracy": accuracy}
        for seed, pair in enumerate([(0.2, 0.4), (0.5, 0.6)])
        for method, accuracy in zip(("base", "other"), pair, strict=True)
    ]
    found = relative_to(rows, {"method": "base"}, ["seed"])
    assert [row["relative"] for row in found] == pytest.approx([1, 2, 1, 1.2])
