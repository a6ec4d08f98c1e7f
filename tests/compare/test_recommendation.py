"""What is recommended follows from what was measured."""

import math
from dataclasses import replace

import pytest

from evergrow.compare.recommendation import recommend, remarks_on
from evergrow.compare.setup import Facts
from tests.compare.made import answered, answers, standing, stopped

GENERAL, EXACT, FAST, SMALL, NEW, NIGHTLY = (
    "In general",
    "Highest accuracy",
    "Updates within 100 ms",
    "Little memory",
    "The newest classes",
    "Retraining, for example every night",
)
LEVEL = [standing("slow", 0.80, seconds=5, spread=0.2), standing("fast", 0.78, seconds=0.01)]
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
NEWEST = [standing("a", 0.9, newest=0.4), standing("b", 0.8, newest=0.7)]


def with_peer(accuracy, **changes):
    return [standing("ours", 0.8), standing("peer", accuracy, way="retrained", **changes)]


def advised(standings):
    return {advice.need: advice for advice in recommend(standings)}


def recommended(advice):
    return None if advice.choice is None else advice.choice.learner.name


@pytest.mark.parametrize(
    ("need", "standings", "name", "message"),
    [
        (GENERAL, APART, "slow", "5 s per update: no incremental learner is more accurate"),
        (GENERAL, LEVEL, "fast", "The most accurate, the slow, has 2.0 points more, which may be"),
        (EXACT, LEVEL, "slow", "80.0% on the newest ones; 5 s per update, 10 kB."),
        (FAST, FASTER, "good", "90 ms per update: 10.0 points below the slow"),
        (FAST, FASTER[:1], None, "No learner updates within 100 ms"),
        (SMALL, SMALLER, "small", "50 kB to store, with 75.0% mean class accuracy: 5.0 points"),
        (NEW, NEWEST, "b", "70.0% mean class accuracy on the newest classes, 80.0% on all"),
        (NIGHTLY, with_peer(0.85), "peer", "5.0 points above the ours, more than the 0.4 points"),
        (NIGHTLY, with_peer(0.81, spread=0.1), "ours", "1.0 points above the ours, which may be"),
        (NIGHTLY, with_peer(0.7), "ours", "10.0 points below the ours"),
    ],
)
def test_the_best_learner_for_a_need_is_recommended(need, standings, name, message):
    advice = advised(standings)[need]
    assert recommended(advice) == name
    assert message in advice.reason


def test_learners_that_were_told_or_stopped_are_not_recommended():
    informed = standing("told", 0.99, way="told")
    found = advised([informed, stopped("late"), standing("ours", 0.5)])
    assert {recommended(advice) for advice in found.values()} <= {"ours", None}


@pytest.mark.parametrize(
    ("standings", "message"),
    [
        ([standing("peer", 0.9, way="retrained")], "No incremental learner finished"),
        ([], "Only learners on a subsample"),
        ([answered("constant", ["1" * 400, *["0" * 8] * 10])], "than a constant prediction"),
    ],
)
def test_nothing_is_recommended_without_a_useful_learner(standings, message):
    (advice,) = recommend(standings)
    assert advice.choice is None
    assert message in advice.reason


def test_learners_are_ranked_by_the_mean_over_classes():
    sizes = [400, *[8] * 10]
    constant, even = (
        answered(name, [answers(share, n) for share, n in zip(shares, sizes, strict=True)])
        for name, shares in {
            "constant": [1.0, 0.25, *[0.0] * 9],
            "even": [0.7, *[0.5] * 10],
        }.items()
    )
    assert constant["accuracy"] > even["accuracy"]
    assert recommended(advised([constant, even])[EXACT]) == "even"


def test_a_much_less_accurate_learner_is_not_equal():
    # With two classes hardly any difference is significant.
    best = answered("best", [answers(0.95), answers(0.9)], seconds=5)
    poor = answered("poor", [answers(0.3), answers(0.8)], seconds=0.01)
    assert recommended(advised([best, poor])[GENERAL]) == "best"


def test_without_updates_their_times_are_not_mentioned():
    found = advised([standing(name, 0.8, seconds=math.nan) for name in "ab"])
    assert list(found) == [EXACT, SMALL, NEW]
    assert "per update" not in found[EXACT].reason


def test_of_equally_accurate_learners_the_fastest_is_taken():
    tied = [
        standing("slow", 0.8, seconds=0.05, n_bytes=10),
        standing("fast", 0.8, seconds=0.001),
        standing("peer", 0.8, way="retrained"),
    ]
    found = advised(tied)
    assert {recommended(found[need]) for need in (GENERAL, EXACT, FAST, NEW)} == {"fast"}
    assert found[SMALL].reason.endswith("80.0% mean class accuracy: as accurate as the fast.")
    assert "The best retrained learner is as accurate as the fast: " in found[NIGHTLY].reason


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


def remarks(standings=(), **changes):
    return [*remarks_on(replace(PLAIN, **changes), standings, has_updates=True)]


def test_a_stopped_learner_that_was_ahead_is_named():
    # Both have 90 % at 2 classes until the one that came to the end falls behind.
    ours = standing("ours", 0.5)
    assert remarks([ours, stopped("late")]) == []
    (result,) = ours.results
    behind = replace(result, points=(replace(result.points[0], class_mean=0.6), *result.points[1:]))
    (remark,) = remarks([replace(ours, results=(behind,)), stopped("late")])
    assert remark.startswith("the late had 90.0% at 2 classes when time ran out")


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
    assert remarks() == []
    assert any(message in remark for remark in remarks(**{fact: value}))
