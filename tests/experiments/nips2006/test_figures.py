"""The figures: performed small, taken up again after a stop, and judged by their numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evergrow.experiments import Experiment, Lab, Source, Table, find_experiments, perform
from evergrow.experiments.nips2006 import fig2, fig3, fig4a, fig4b, fig4c, fig4d, sweeps
from evergrow.experiments.nips2006.drawings import drawn_scenes

FIGURES = {
    "fig2": (fig2, ["images", "bicycle", "car", "background", "test patches of one"]),
    "fig3": (fig3, ["image", "its words", "posterior of"]),
    "fig4a": (fig4a, ["windows per image", sweeps.RATE, "k-means", "seconds"]),
    "fig4b": (fig4b, ["words in the codebook", sweeps.RATE, "grown fully"]),
    "fig4c": (fig4c, ["descriptors that the codebook", sweeps.RATE, "leaves per tree"]),
    "fig4d": (fig4d, ["trees, each with", sweeps.RATE, "standard deviation, points"]),
}


class StoppedError(Exception):
    """Stands for a user who stops a run."""


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    small = sweeps.Sizes(n_training=200, n_words=8, n_windows=20)
    monkeypatch.setattr(sweeps, "sizes", lambda lab: small)
    monkeypatch.setattr(fig4a, "_FEW_WINDOWS", (10, 20))
    monkeypatch.setattr(fig4b, "_FEW_LEAVES", (2, 8))
    monkeypatch.setattr(fig4c, "_FEW_DESCRIPTORS", (100, 200))
    monkeypatch.setattr(fig4c, "_FEW_LEAVES", (2, 8))


def lab_of(experiment: Experiment, n_seeds: int = 1) -> Lab:
    scenes = Source(None, lambda: drawn_scenes(12))
    sources = dict.fromkeys(experiment.sources, scenes)
    return Lab(sources, quick=True, n_seeds=n_seeds, n_jobs=1)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_performed_and_its_picture_names_what_it_shows(
    name: str, tmp_path: Path
) -> None:
    module, words = FIGURES[name]
    outcome = perform(module.EXPERIMENT, tmp_path, lab_of(module.EXPERIMENT))
    assert outcome.findings
    picture = (tmp_path / f"nips2006-{name}.svg").read_text(encoding="utf-8")
    shown = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture))
    assert [word for word in words if word not in shown] == []
    assert len(picture) < 500_000


def test_a_figure_that_was_stopped_ends_with_the_same_numbers(tmp_path: Path) -> None:
    experiment = fig4a.EXPERIMENT
    perform(experiment, tmp_path / "whole", lab_of(experiment, 2))
    n_done = 0

    def stopping(lab: Lab, run: Any) -> Any:
        nonlocal n_done
        if n_done == 2:
            raise StoppedError
        n_done += 1
        return experiment.measure(lab, run)

    with pytest.raises(StoppedError):
        perform(replace(experiment, measure=stopping), tmp_path / "two", lab_of(experiment, 2))
    again = perform(experiment, tmp_path / "two", lab_of(experiment, 2))
    assert again.n_measured == 2
    csvs = [(tmp_path / part / "nips2006-fig4a.csv").read_bytes() for part in ("whole", "two")]
    assert csvs[0] == csvs[1]


def test_the_catalogue_finds_all_six_figures() -> None:
    names = [experiment.name for experiment in find_experiments(["nips2006"])]
    assert names == [f"nips2006-{name}" for name in FIGURES]


@pytest.mark.parametrize("name", ["fig4a", "fig4b", "fig4c", "fig4d"])
def test_the_published_rate_is_that_of_bikes_with_words_from_whole_images(name: str) -> None:
    (row,) = FIGURES[name][0].EXPERIMENT.published
    assert row["rate"] == 84.4


def verdicts(experiment: Experiment, rows: list[dict[str, Any]]) -> list[str]:
    return [finding.verdict for finding in experiment.judge(Table(rows))]


def by_trees(rates: dict[int, tuple[float, ...]]) -> list[dict[str, Any]]:
    return [
        {"seed": seed, "trees": n, "rate": rate}
        for n, found in rates.items()
        for seed, rate in enumerate(found)
    ]


def test_trees_agree_where_five_are_better_steadier_and_enough() -> None:
    rows = by_trees({1: (70, 80, 74, 66, 78), 5: (90, 91, 90, 91, 90), 10: (90, 91, 91, 91, 90)})
    assert verdicts(fig4d.EXPERIMENT, rows) == ["agrees", "agrees", "agrees"]


def test_trees_differ_where_one_is_best_and_steadiest_and_ten_are_better_than_five() -> None:
    rows = by_trees({1: (90, 91, 90, 91, 90), 5: (70, 80, 74, 66, 78), 10: (80, 90, 84, 76, 88)})
    assert verdicts(fig4d.EXPERIMENT, rows) == ["differs", "differs", "differs"]


def test_too_few_seeds_leave_the_spread_open() -> None:
    rows = by_trees({1: (70, 80, 74), 5: (90, 91, 90), 10: (90, 91, 91)})
    assert verdicts(fig4d.EXPERIMENT, rows)[1] == "open"


def by_leaves(rates: dict[Any, float]) -> list[dict[str, Any]]:
    return [{"seed": s, "leaves": n, "rate": rate} for n, rate in rates.items() for s in (0, 1)]


def test_a_codebook_is_large_enough_unless_a_larger_one_is_clearly_better() -> None:
    assert verdicts(fig4b.EXPERIMENT, by_leaves({10: 60, 1000: 90, "all": 90.5}))[0] == "agrees"
    assert verdicts(fig4b.EXPERIMENT, by_leaves({10: 60, 1000: 90, "all": 95}))[0] == "differs"


def test_a_difference_within_the_noise_is_left_open() -> None:
    rows = [
        {"seed": seed, "leaves": leaves, "rate": rate}
        for leaves, rates in ((10, (80, 90, 85)), (1000, (91, 82, 86)), ("all", (86, 86, 86)))
        for seed, rate in enumerate(rates)
    ]
    assert verdicts(fig4b.EXPERIMENT, rows)[1] == "open"


def codebooks(rates: dict[tuple[str, str], tuple[float, float]], slower: float) -> list[Any]:
    seconds = {fig4a.KMEANS: slower}
    return [
        {
            "seed": seed,
            "codebook": codebook,
            "pooling": pooling,
            "windows": windows,
            "rate": rate,
            "filled": 50.0,
            **dict.fromkeys(sweeps.TIMED, seconds.get(codebook, 1.0)),
        }
        for (codebook, pooling), found in rates.items()
        for windows, rate in zip((100, 1000), found, strict=True)
        for seed in (0, 1)
    ]


def test_codebooks_agree_where_they_are_as_in_the_paper() -> None:
    rates = {
        (fig4a.ERC, fig4a.BINARY): (80.0, 95.0),
        (fig4a.ERC, fig4a.INFORMATION): (80.0, 94.0),
        (fig4a.ERC, fig4a.SHARES): (80.0, 90.0),
        (fig4a.KMEANS, fig4a.BINARY): (75.0, 85.0),
        (fig4a.UNSUPERVISED, fig4a.BINARY): (75.0, 60.0),
        (fig4a.UNSUPERVISED, fig4a.INFORMATION): (75.0, 80.0),
    }
    assert verdicts(fig4a.EXPERIMENT, codebooks(rates, 10.0)) == ["agrees"] * 8


def test_codebooks_differ_where_all_is_the_other_way_round() -> None:
    rates = {
        (fig4a.ERC, fig4a.BINARY): (80.0, 70.0),
        (fig4a.ERC, fig4a.INFORMATION): (80.0, 85.0),
        (fig4a.ERC, fig4a.SHARES): (80.0, 60.0),
        (fig4a.KMEANS, fig4a.BINARY): (85.0, 90.0),
        (fig4a.UNSUPERVISED, fig4a.BINARY): (70.0, 90.0),
        (fig4a.UNSUPERVISED, fig4a.INFORMATION): (70.0, 80.0),
    }
    assert verdicts(fig4a.EXPERIMENT, codebooks(rates, 0.1)) == ["differs"] * 8


def leaf(**found: Any) -> list[dict[str, Any]]:
    where = {"data": "made", "object": "bike", "on_object_images": 99.0}
    rules = (fig2.ALL_UNMIXED, fig2.UNMIXED, fig2.SURPLUS)
    return [{**where, "seed": seed, "leaf": rule, **found} for seed in (0, 1) for rule in rules]


def test_a_leaf_of_patches_beside_the_object_does_not_agree_however_pure_it_is() -> None:
    experiment = fig2.EXPERIMENT
    assert verdicts(experiment, leaf(on_object=60.0, all_on_object=20.0)) == ["agrees"]
    assert verdicts(experiment, leaf(on_object=30.0, all_on_object=20.0)) == ["open"]
    assert verdicts(experiment, leaf(on_object=10.0, all_on_object=20.0)) == ["differs"]


def test_without_outlines_a_leaf_can_only_differ_or_stay_open() -> None:
    experiment = fig2.EXPERIMENT
    assert verdicts(experiment, leaf(plain=80.0, all_plain=30.0)) == ["differs"]
    assert verdicts(experiment, leaf(plain=10.0, all_plain=30.0)) == ["open"]


def maps(**found: Any) -> list[dict[str, Any]]:
    where = {"data": "made", "object": "bike", "seed": 0, "plain": 30.0}
    mine = [{**where, "class": "bike", "unmixed": 9.0, **found} for _ in range(4)]
    return [*mine, *({**where, "class": "background", "unmixed": 1.0} for _ in range(4))]


def test_words_agree_only_where_they_lie_on_a_known_object() -> None:
    experiment = fig3.EXPERIMENT
    assert verdicts(experiment, maps(on_object=0.7, beside_object=0.4)) == ["agrees"]
    assert verdicts(experiment, maps(on_object=0.4, beside_object=0.7)) == ["differs"]


def test_words_that_speak_from_bare_patches_differ() -> None:
    experiment = fig3.EXPERIMENT
    assert verdicts(experiment, maps(on_plain=0.7, on_structure=0.4)) == ["differs"]
    assert verdicts(experiment, maps(on_plain=0.4, on_structure=0.7)) == ["open"]


def test_rates_that_shall_be_alike_stay_open_where_noise_hides_a_difference() -> None:
    alike, apart, hidden = (
        sweeps.Difference(mean, noise).is_little for mean, noise in ((0.5, 3), (4, 3), (2, 3))
    )
    assert (alike, apart, hidden) == (True, False, None)
