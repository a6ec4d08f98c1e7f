"""Pages say settings in words, and explain the words that they use."""

import pytest

from evergrow.research import PAPERS, find_experiments
from evergrow.research.experiments.terms import TERMS, Term, format_terms
from evergrow.research.experiments.wording import say_number, say_setting, say_sides

TOLD = (
    Term("NN", "guesses"),
    Term("NN-H", "guesses as NN does"),
    Term("H", "splits", ("hierarchical",)),
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("NN is best.", ["NN"]),
        # A meaning may need other terms.
        ("NN-H is best.", ["NN", "NN-H"]),
        ("hierarchical", ["H"]),
        ("Nothing is: H2, HNN.", []),
    ],
)
def test_a_page_explains_the_terms_that_it_uses(text, names):
    assert format_terms(TOLD, text).count("\n- **") == max(0, len(names) - 1)
    assert all(f"- **{name}**: " in format_terms(TOLD, text) for name in names)


def test_every_paper_has_terms_with_different_names():
    assert {paper.name for paper in PAPERS} == {*TERMS}
    for terms in TERMS.values():
        names = [term.name for term in terms]
        assert len(names) == len({*names})
        assert not any(term.meaning.endswith(".") for term in terms)


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        ({"method": "nn-h"}, {"method": "joint"}, "NN-H against J"),
        ({"weight": 10.0}, {"weight": 1.0}, "weight 10 against 1"),
        ({"method": "igt", "seed": 1}, {"method": "uls", "seed": 1}, "IGT against ULS"),
        (
            {"method": "joint", "weight": 0.1},
            {"method": "hierarchical", "weight": 1.0},
            "J, weight 0.1 against H, weight 1",
        ),
        ({"other": "a"}, {"other": "b"}, "a against b"),
    ],
)
def test_sides_are_said_as_on_the_figures(one, other, text):
    assert say_sides(one, other) == text


def test_a_setting_says_what_it_has():
    setting = {"part": "guess", "method": "joint, low rank", "check": None, "fine": 0.1, "size": 2}
    assert say_setting(setting) == "J, low rank, fine labels for 10 %, size 2"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (("accuracy", 0.1402), "14.02 %"),
        (("rate", 94.9333, 0.78), "94.9 ± 0.8 %"),
        (("test_error", 0.0065, 0.0004), "0.65 ± 0.04 %"),
        (("seconds", 1762.05), "1762"),
        (("comparisons", 0.3 + 1e-17, 1e-17), "0.3 ± 0"),
    ],
)
def test_shares_are_in_percent(number, text):
    assert say_number(*number) == text


def test_settings_of_the_published_numbers_are_in_words():
    for experiment in find_experiments(["all"]):
        for row in experiment.published:
            said = {key: row[key] for key in row if key in experiment.keys}
            assert "_" not in say_setting({**said, "data": None}), said
