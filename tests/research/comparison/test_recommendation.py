"""What is recommended follows from what was measured."""

import math
from dataclasses import replace

import pytest

from evergrow.research import Facts, recommend, remarks_on
from evergrow.research.comparison.recommendation import remarks_on_stopped
from tests.research.comparison.made_up import answered, answers, standing, stopped

GENERAL, EXACT, FAST, SMALL, NEW, NIGHTLY = (
    "In general",
    "Highest accuracy",
    "Updates within 100 ms",
    "Little memory",
    "The newest classes",
    "Retraining, for example every night",
)


def advised(standings):
    return {advice.need: advice for advice in recommend(standings)}


def recommended(advice):
    return None if advice.choice is None else advice.choice.learner.name


SLOW = standing("slow", 0.80, seconds=5, spread=0.2)
LEVEL = [SLOW, standing("fast", 0.78, seconds=0.01)]
FASTER = [
    standing("slow", 0.9, seconds=5),
    standing("good", 0.8, seconds=0.09),
    standing("poor", 0.7, seconds=0.001),
]
SMALLER = [
    standing("large", 0.80, n_bytes=9_000_000),
    standing("small", 0.75, n_bytes=50_000),
    standing("tiny", 0.30, n_bytes=10),
]
APART = [standing("slow", 0.8, seconds=5), standing("fast", 0.7, seconds=0.01)]
PEER = [standing("ours", 0.8), standing("peer", 0.85, way="retrained")]
NEWEST = [standing("a", 0.9, newest=0.4), standing("b", 0.8, newest=0.7)]


@pytest.mark.parametrize(
    ("need", "standings", "name", "message"),
    [
        pytest.param(GENERAL, APART, "slow", "", id="the most accurate, if the gap is no chance"),
        pytest.param(GENERAL, LEVEL, "fast", "which may be chance", id="the faster of two alike"),
        pytest.param(EXACT, LEVEL, "slow", "", id="the most accurate of two alike"),
        pytest.param(FAST, FASTER, "good", "10.0 points below the slow", id="accurate and fast"),
        pytest.param(FAST, FASTER[:1], None, "", id="none if none is fast"),
        pytest.param(SMALL, SMALLER, "small", "", id="the smallest that knows enough"),
        pytest.param(NEW, NEWEST, "b", "", id="the best on the newest classes"),
        pytest.param(
            NIGHTLY,
            PEER,
            "peer",
            "5.0 points above the ours, more than the 0.4 points",
            id="a better peer that is retrained",
        ),
    ],
)
def test_the_learner_that_serves_a_need_best_is_recommended(need, standings, name, message):
    advice = advised(standings)[need]
    assert recommended(advice) == name
    assert message in advice.reason


@pytest.mark.parametrize(
    ("accuracy", "message"), [(0.81, "1.0 points above the ours, which may be"), (0.7, "below")]
)
def test_a_retrained_peer_that_is_not_better_is_not_recommended(accuracy, message):
    peer = standing("peer", accuracy, spread=0.1, way="retrained")
    found = advised([standing("ours", 0.8), peer])[NIGHTLY]
    assert recommended(found) == "ours"
    assert message in found.reason


def test_learners_that_knew_all_classes_or_were_stopped_are_not_recommended():
    informed = standing("told", 0.99, way="told")
    found = advised([informed, stopped("late"), standing("ours", 0.5)])
    assert {recommended(advice) for advice in found.values()} <= {"ours", None}


def test_without_an_incremental_learner_nothing_is_recommended():
    (advice,) = recommend([standing("peer", 0.9, way="retrained")])
    assert advice.choice is None
    assert "No incremental learner finished" in advice.reason


def test_where_only_a_subsample_was_measured_nothing_is_recommended():
    (advice,) = recommend([])
    assert advice.choice is None
    assert "Only learners on a subsample" in advice.reason


def unbalanced(name, shares, **changes):
    """A class of 400 test samples and ten of 8."""
    sizes = [400, *[8] * 10]
    return answered(
        name, [answers(share, n) for share, n in zip(shares, sizes, strict=True)], **changes
    )


def test_learners_are_ranked_by_the_mean_over_classes():
    constant = unbalanced("constant", [1.0, 0.25, *[0.0] * 9])
    even = unbalanced("even", [0.7] + [0.5] * 10)
    assert constant.accuracy > even.accuracy
    assert recommended(advised([constant, even])[EXACT]) == "even"


def test_a_constant_prediction_is_not_recommended():
    constant = unbalanced("constant", [1.0] + [0.0] * 10, seconds=1e-6)
    assert constant.accuracy > 0.8
    (advice,) = recommend([constant])
    assert advice.choice is None
    assert "better than a constant prediction" in advice.reason
    worse_than_that = advised([constant, unbalanced("even", [0.2] * 11)])
    assert {recommended(advice) for advice in worse_than_that.values()} <= {"even", None}


def test_a_much_less_accurate_learner_is_not_equal_even_with_two_classes():
    best = answered("best", [answers(0.95), answers(0.9)], seconds=5)
    poor = answered("poor", [answers(0.3), answers(0.8)], seconds=0.01)
    assert recommended(advised([best, poor])[GENERAL]) == "best"


def test_without_updates_their_times_are_not_mentioned():
    found = advised([standing(name, 0.8, seconds=math.nan) for name in "ab"])
    assert list(found) == [EXACT, SMALL, NEW]
    assert "per update" not in found[EXACT].reason


def test_learners_with_equal_predictions_are_called_as_accurate():
    found = advised(
        [
            standing("slow", 0.8, seconds=5.0, n_bytes=10),
            standing("fast", 0.8, seconds=0.01),
            standing("peer", 0.8, way="retrained"),
        ]
    )
    assert "10 ms per update: no incremental learner is more accurate" in found[GENERAL].reason
    assert found[SMALL].reason.endswith("80.0% mean class accuracy: as accurate as the fast.")
    assert "The best retrained learner is as accurate as the fast: " in found[NIGHTLY].reason
    assert "0.0 points" not in " ".join(advice.reason for advice in found.values())


def test_of_equally_accurate_learners_the_fastest_is_taken_for_every_need():
    tied = [standing("slow", 1.0, seconds=0.05), standing("fast", 1.0, seconds=0.001)]
    found = advised(tied)
    assert {recommended(found[need]) for need in (GENERAL, EXACT, FAST, NEW)} == {"fast"}


def test_a_stopped_learner_that_was_ahead_is_named():
    # Both have 90 % at 2 classes until the one that came to the end falls behind.
    (result,) = standing("ours", 0.5).results
    behind = replace(result, points=(replace(result.points[0], class_mean=0.6), *result.points[1:]))
    ours = replace(standing("ours", 0.5), results=(behind,))
    (remark,) = remarks_on_stopped([ours, stopped("late")])
    assert remark.startswith("the late had 90.0% at 2 classes when time ran out")


def test_a_stopped_learner_that_was_behind_is_not_named():
    assert remarks_on_stopped([standing("ours", 0.5), stopped("late")]) == []


PLAIN = Facts(
    n_train=10_000,
    n_test=1000,
    n_features=64,
    n_classes=100,
    examples_per_class=100,
    largest_class=100,
    n_single=0,
    n_untested=0,
    scale_ratio=2.0,
)


def test_nothing_is_remarked_of_plain_data():
    assert remarks_on(PLAIN) == []


@pytest.mark.parametrize(
    ("fact", "value", "message"),
    [
        ("examples_per_class", 15, "at most 15 training examples"),
        ("largest_class", 501, "The largest class has 501 training examples, the median class 100"),
        ("n_classes", 5000, "There are 5000 classes"),
        ("scale_ratio", 400.0, "varies 400 times as much"),
        ("n_single", 1, "1 of 100 classes has a single training example"),
        ("n_single", 3, "3 of 100 classes have a single training example"),
        ("n_untested", 2, "2 of 100 classes have no test samples"),
    ],
)
def test_unusual_data_get_a_remark(fact, value, message):
    remarks = remarks_on(replace(PLAIN, **{fact: value}))
    assert any(message in remark for remark in remarks)
