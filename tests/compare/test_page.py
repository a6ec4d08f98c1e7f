"""The page is one file with all numbers, and escapes all text."""

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from evergrow.compare import page
from evergrow.compare.comparison import Comparison
from evergrow.compare.page import draw_charts, places_of_styles, render_page, spread_apart
from evergrow.compare.recommendation import recommend
from evergrow.compare.setup import Facts
from tests.compare.made import standing, stopped

EVIL = "<script>alert('x')</script>"


class _Balance(HTMLParser):
    """Finds tags that are left open or closed twice."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(text):
    parser = _Balance()
    parser.feed(text)
    assert parser.open == []
    return parser


@pytest.fixture
def found():
    standings = (
        standing("good", 0.9, seconds=0.02),
        standing("peer", 0.8, seconds=3.0, way="retrained", family="scikit-learn"),
        stopped("late", family="forests"),
    )
    record = {
        "data": {"name": EVIL, "sha256": "0" * 64},
        "stream": {
            "protocol": "batches",
            "initial": 2,
            "chunk": 4,
            "repetitions": 1,
            "checkpoints": [2, 6, 10],
        },
        "seed": 0,
        "quick": False,
        "processor": "a <processor>",
        "n_cores": 2,
        "versions": {"evergrow": "1"},
    }
    facts = Facts(100, 50, 8, 10, 10.0, 10, 0, 0, 1.0)
    advice = tuple(recommend(standings))
    return Comparison(EVIL, facts, standings, standings, facts, advice, ("a & b",), record)


def test_the_page_has_three_plots_two_tables_and_no_script(found):
    text = render_page(found)
    tags = parsed(text).tags
    assert (tags.count("figure"), tags.count("table"), tags.count("script")) == (3, 2, 0)
    assert "<h1>Learners compared on &lt;script&gt;" in text
    assert "a &amp; b" in text
    assert "stopped after 5 s: 90.0% at 2 classes" in text


def test_the_page_needs_nothing_else_and_suits_dark_mode(found):
    text = render_page(found)
    attributes = parsed(text).attributes
    assert not {name for name, _ in attributes} & {"src", "data", "action", "onload"}
    links = [value for name, value in attributes if name.endswith("href")]
    links += re.findall(r"url\((.*?)\)", text)
    assert all(link.startswith("#") for link in links)
    assert "@import" not in text
    # Plots take their colours from the style sheet.
    plots = "".join(re.findall("<figure.*?</figure>", text, re.DOTALL))
    assert "var(--c0)" in plots
    assert set(re.findall("#[0-9a-f]{6}(?![0-9a-z])", plots)) <= {"#000000"}
    for each in found.advice:
        assert f"<dt>{each.need}</dt><dd>{each.reason}</dd>" in text
    assert text.count("<section class='card") == len({id(each.choice) for each in found.advice})
    assert [places_of_styles(24, {3, 11})[number] for number in (3, 11, 1)] == [0, 1, 2]


def test_what_was_not_measured_is_not_plotted(found):
    empty = replace(found, standings=(), advice=tuple(recommend([])))
    tags = parsed(render_page(empty)).tags
    assert (tags.count("figure"), tags.count("table")) == (0, 1)
    alone = (standing("alone", 0.9, seconds=float("nan")),)
    stream = {**found.record["stream"], "initial": 10}
    record = {**found.record, "stream": stream}
    text = render_page(replace(found, standings=alone, sample_facts=None, record=record))
    tags = parsed(text).tags
    assert (tags.count("figure"), tags.count("table")) == (2, 1)
    assert "Learners got all of them at once." in text


def test_without_matplotlib_the_page_says_what_to_install(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(page, "install_command", lambda extra: f"pip install <{extra}>")
    text = render_page(found)
    assert "Plots need matplotlib: <code>pip install &lt;plot&gt;" in text
    assert parsed(text).tags.count("table") == 2


@pytest.mark.parametrize("n", [1, 20])
@pytest.mark.slow
def test_plots_name_any_number_of_learners(n):
    standings = [standing(f"s{i}", 0.5 + 0.01 * i, seconds=0.01 * (i + 1)) for i in range(n)]
    charts = [ElementTree.fromstring(chart) for chart in draw_charts(standings, {1})]
    for chart in charts:
        assert chart.tag.endswith("svg")
        assert {f"the s{i}" for i in range(n)} <= {
            word for text in chart.itertext() for word in re.findall(r"the s\d+", text)
        }
    again = draw_charts(standings, {1})
    assert again == draw_charts(standings, {1})


def test_labels_are_moved_apart_and_stay_below_the_top():
    places = spread_apart([50.0, 51.0, 49.0, 90.0, 99.0, 99.5], 10, 100)
    assert np.argsort(places).tolist() == [2, 0, 1, 3, 4, 5]
    assert (np.diff(np.sort(places)) >= 10 - 1e-9).all()
    assert max(places) <= 100
