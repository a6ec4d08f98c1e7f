"""The figures: run with tiny sizes, and resumed after an interruption."""

import re
from dataclasses import replace

import pytest

from evergrow.research import (
    ExperimentContext,
    Source,
    find_experiments,
    run_experiment,
)
from evergrow.research.papers.nips2006 import (
    fig2,
    fig3,
    fig4a,
    fig4b,
    fig4c,
    fig4d,
    settings,
    sift,
    sweeps,
)
from evergrow.research.papers.nips2006.scenes import scene_dataset
from tests.research.papers.checks import check_resuming

FIGURES = {
    "fig2": (fig2, ["images", "bicycle", "car", "background", "test patches of one"]),
    "fig3": (fig3, ["image", "its words", "posterior of"]),
    "fig4a": (fig4a, ["windows per image", sweeps.RATE, "k-means", "kd-trees", "ROC", "seconds"]),
    "fig4b": (fig4b, ["words in the codebook", sweeps.RATE, "grown fully"]),
    "fig4c": (fig4c, ["descriptors that the codebook", sweeps.RATE, "leaves per tree"]),
    "fig4d": (fig4d, ["trees, each with", sweeps.RATE, "standard deviation, points"]),
    "settings": (settings, ["most trials, T_max", "score to accept, S_min", "masks", "bicycle"]),
    "sift": (sift, [sweeps.RATE, "k-means", "5 trees", "bicycle, SIFT", "roots of shares"]),
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    small = sweeps.Sizes(n_training=200, n_words=8, n_windows=20)
    monkeypatch.setattr(sweeps, "sizes", lambda context: small)
    monkeypatch.setattr(fig4a, "_FEW_WINDOWS", (10, 20))
    monkeypatch.setattr(fig4b, "_FEW_LEAVES", (2, 8))
    monkeypatch.setattr(fig4c, "_FEW_DESCRIPTORS", (100, 200))
    monkeypatch.setattr(fig4c, "_FEW_LEAVES", (2, 8))


def context_of(experiment, n_seeds=1):
    scenes = Source(None, lambda: scene_dataset(12))
    sources = dict.fromkeys(experiment.sources, scenes)
    return ExperimentContext(sources, quick=True, n_seeds=n_seeds, n_jobs=1)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_measured_and_its_picture_names_what_it_shows(name, tmp_path):
    module, words = FIGURES[name]
    outcome = run_experiment(module.EXPERIMENT, tmp_path, context_of(module.EXPERIMENT))
    assert outcome.findings
    picture = (tmp_path / f"nips2006-{name}.svg").read_text(encoding="utf-8")
    shown = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture))
    assert [word for word in words if word not in shown] == []
    assert len(picture) < 500_000


def test_a_figure_that_was_stopped_ends_with_the_same_numbers(tmp_path):
    experiment = fig4a.EXPERIMENT
    check_resuming(experiment, tmp_path, lambda: context_of(experiment, 2), 2)


def test_the_catalogue_finds_all_pages():
    names = [experiment.name for experiment in find_experiments(["nips2006"])]
    assert names == [f"nips2006-{name}" for name in FIGURES]


def test_pictures_are_of_drawn_scenes_where_photographs_are_measured_too(tmp_path, monkeypatch):
    (tmp_path / "photos").mkdir()
    monkeypatch.setenv("EVERGROW_DATA", str(tmp_path))
    drawn = Source(None, lambda: scene_dataset(12))
    sources = {"photographs": replace(drawn, file="photos"), "drawings": drawn}
    assert sweeps.shown_source(ExperimentContext(sources)) == "drawings"
    own = ExperimentContext(sources, data=tmp_path / "photos")
    assert sweeps.shown_source(own) == "photographs"


@pytest.mark.parametrize("name", ["fig4a", "fig4b", "fig4c", "fig4d"])
def test_the_published_rate_is_that_of_bikes_with_words_from_whole_images(name):
    (row,) = FIGURES[name][0].EXPERIMENT.published
    assert row["rate"] == 84.4


def test_the_papers_number_is_drawn_only_where_something_was_measured(tmp_path):
    run_experiment(fig4a.EXPERIMENT, tmp_path, context_of(fig4a.EXPERIMENT))
    run_experiment(fig4d.EXPERIMENT, tmp_path, context_of(fig4d.EXPERIMENT))
    # Twenty windows were coded, and the paper's number is of 8000; five trees were measured.
    texts = [(tmp_path / f"nips2006-{name}.svg").read_text() for name in ("fig4a", "fig4d")]
    assert ["paper:" in text for text in texts] == [False, True]
