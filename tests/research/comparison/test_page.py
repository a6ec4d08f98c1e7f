"""The page is one file with all numbers, and escapes all text."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from evergrow.research import Dataset, Facts, choose, compare, mixture, recommend
from evergrow.research.comparison.charts import (
    accuracy_chart,
    assign_styles,
    cost_chart,
    memory_chart,
)
from evergrow.research.comparison.comparison import Comparison
from evergrow.research.comparison.page import render_page
from evergrow.research.comparison.svg import Axis, Box, spread
from tests.research.comparison.made_up import standing, stopped

EVIL = "<script>alert('x')</script>"


class _Balance(HTMLParser):
    """Finds tags that are left open or closed twice."""

    void = ("meta",)

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.void:
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


def test_the_page_is_well_formed_with_three_plots(found):
    tags = parsed(render_page(found)).tags
    assert tags.count("figure") == 3
    assert tags.count("table") == 2


def test_names_are_escaped(found):
    text = render_page(found)
    assert "script" not in parsed(text).tags
    assert "&lt;script&gt;" in text


def test_labels_and_errors_are_escaped(tmp_path):
    plain = mixture(4, 6, n_train=8, n_test=6)
    labels = np.array([f"{EVIL}{i}" for i in range(4)])
    data = Dataset(EVIL, plain.X_train, labels[plain.y_train], plain.X_test, labels[plain.y_test])
    compare(data, tmp_path, learners=choose(only=["lda", "ridge", "sgd"]))
    text = (tmp_path / "comparison.html").read_text(encoding="utf-8")
    assert "script" not in parsed(text).tags


def test_nothing_is_fetched_from_elsewhere(found):
    text = render_page(found)
    names = {name for name, _ in parsed(text).attributes}
    assert not names & {"src", "href", "xlink:href", "data", "action", "onload"}
    assert not re.search(r"https?:|//|@import|url\(", text)
    assert "default-src 'none'" in text


def test_it_is_made_for_phones_and_for_the_dark(found):
    text = render_page(found)
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text


def test_a_stopped_learner_is_marked(found):
    assert "stopped after 5 s: 90.0% at 2 classes" in render_page(found)


def test_the_recommendation_stands_on_the_page(found):
    text = render_page(found)
    assert found.advice[0].reason in text
    assert "a &amp; b" in text


def test_without_a_subsample_there_is_one_table(found):
    assert parsed(render_page(replace(found, sample_facts=None))).tags.count("table") == 1


def test_without_learners_on_all_data_there_are_no_plots(found):
    empty = replace(found, standings=(), advice=tuple(recommend([])))
    tags = parsed(render_page(empty)).tags
    assert tags.count("figure") == 0
    assert tags.count("table") == 1


def test_without_updates_their_cost_is_not_plotted(found):
    alone = (standing("alone", 0.9, seconds=float("nan")),)
    stream = {**found.record["stream"], "initial": 10}
    text = render_page(replace(found, standings=alone, record={**found.record, "stream": stream}))
    assert parsed(text).tags.count("figure") == 2
    assert "Learners got all of them at once." in text


@pytest.mark.parametrize("n", [0, 1, 20])
def test_plots_are_drawn_of_any_number_of_learners(n):
    standings = [standing(f"s{i}", 0.5 + 0.01 * i, seconds=0.01 * (i + 1)) for i in range(n)]
    numbers = range(1, n + 1)
    for picture in (
        accuracy_chart(standings, numbers),
        cost_chart(standings, numbers),
        memory_chart(standings, numbers),
    ):
        assert ElementTree.fromstring(picture).tag == "svg"


def test_marks_of_the_costs_are_at_their_values_and_labels_apart():
    # All but one at nearly the same place.
    shown = [standing(f"s{i}", 0.9 + 0.001 * i, seconds=0.01 + 1e-5 * i) for i in range(12)]
    shown.append(standing("far", 0.2, seconds=1.0))
    root = ElementTree.fromstring(cost_chart(shown, range(1, 14), {3}))
    groups = list(root.iter("g"))
    x = Axis.over((each.seconds for each in shown), 56, 776, log=True)
    y = Axis.over((each.class_mean for each in shown), 504, 34)
    boxes = []
    for group, each in zip(groups, shown, strict=True):
        corners = [pair.split(",") for pair in group.find("polygon").get("points").split()]
        middle = np.mean(np.array(corners, dtype=float), axis=0)
        assert middle == pytest.approx([x.place(each.seconds), y.place(each.class_mean)], abs=0.1)
        label = group.find("text")
        left, bottom = float(label.get("x")), float(label.get("y")) + 3
        boxes.append(Box(left, bottom - 14, left + 6.4 * len(label.text), bottom))
    assert all(a.overlap(b) == 0 for i, a in enumerate(boxes) for b in boxes[:i])
    assert ["important" in group.get("class") for group in groups].index(True) == 2


def test_lines_are_told_apart_and_recommended_ones_are_thick(found):
    styles = assign_styles(range(1, 25), {3, 11})
    assert len(set(styles.values())) == 24
    # By colour alone.
    assert (styles[3], styles[11]) == ("c0 d0", "c1 d0")
    thick = re.findall(r'<g class="line (c\d d\d) important">', render_page(found))
    assert thick == ["c0 d0"]


def test_a_learner_that_is_recommended_for_several_needs_has_one_card(found):
    text = render_page(found)
    assert text.count("<section class='card") == len({id(each.choice) for each in found.advice})
    assert all(f"<dt>{each.need}</dt>" in text for each in found.advice)


def test_the_page_is_named_in_plain_words(found):
    text = render_page(replace(found, name="flowers"))
    assert "<h1>Learners compared on flowers</h1>" in text
    assert "mean class accuracy at the end" in text
    assert not re.search(r"\d %", text)


def test_labels_are_moved_apart_and_keep_their_order():
    places = spread([50.0, 51.0, 49.0, 90.0], 10, 0, 100)
    assert places[2] < places[0] < places[1] < places[3]
    gaps = np.diff(np.sort(places))
    assert (gaps >= 10 - 1e-9).all()


def test_labels_stay_inside():
    places = spread([99.0, 99.5, 100.0], 10, 0, 100)
    assert max(places) <= 100


def test_an_axis_of_powers_of_ten_has_them_as_ticks():
    assert Axis.over([0.002, 5.0], 0, 100, log=True).ticks == pytest.approx(
        [0.001, 0.01, 0.1, 1.0, 10.0]
    )


def test_an_axis_holds_its_values():
    axis = Axis.over([0.132, 0.71], 0, 100)
    assert axis.low <= 0.132
    assert axis.high >= 0.71
    assert 3 <= len(axis.ticks) <= 8
