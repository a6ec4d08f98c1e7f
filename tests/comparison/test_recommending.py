"""What is recommended follows from what was measured."""

from dataclasses import replace

import pytest

from evergrow.comparison import Facts, recommend, remarks_on
from evergrow.comparison.recommending import remarks_on_stopped
from tests.comparison.made_up import standing, stopped

GENERAL, EXACT, FAST, SMALL, NEW, NIGHTLY = (
    "In general",
    "The last point of accuracy",
    "Updates within 100 ms",
    "Little memory",
    "The newest classes",
    "Training anew, as every night",
)


def advised(standings):
    return {advice.need: advice for advice in recommend(standings)}


def name_of(advice):
    return None if advice.choice is None else advice.choice.contender.name


def test_the_most_accurate_is_taken_when_the_gap_is_no_chance():
    found = advised([standing("slow", 0.8, seconds=5), standing("fast", 0.7, seconds=0.01)])
    assert name_of(found[GENERAL]) == "slow"


def test_the_faster_of_two_that_are_level_is_taken():
    slow = standing("slow", 0.80, seconds=5, spread=0.2)
    found = advised([slow, standing("fast", 0.78, seconds=0.01)])
    assert name_of(found[GENERAL]) == "fast"
    assert "which may be chance" in found[GENERAL].reason
    assert name_of(found[EXACT]) == "slow"


def test_the_most_accurate_of_the_fast_is_taken_for_fast_updates():
    found = advised(
        [
            standing("slow", 0.9, seconds=5),
            standing("good", 0.8, seconds=0.09),
            standing("poor", 0.7, seconds=0.001),
        ]
    )
    assert name_of(found[FAST]) == "good"
    assert "10.0 points below the slow" in found[FAST].reason


def test_nobody_is_recommended_for_fast_updates_if_nobody_is_fast():
    found = advised([standing("slow", 0.9, seconds=5)])
    assert name_of(found[FAST]) is None


def test_the_smallest_is_taken_for_little_memory_unless_it_knows_too_little():
    found = advised(
        [
            standing("large", 0.80, n_bytes=9_000_000),
            standing("small", 0.75, n_bytes=50_000),
            standing("tiny", 0.30, n_bytes=10),
        ]
    )
    assert name_of(found[SMALL]) == "small"


def test_the_best_on_the_newest_classes_is_named():
    found = advised([standing("a", 0.9, newest=0.4), standing("b", 0.8, newest=0.7)])
    assert name_of(found[NEW]) == "b"


def test_a_peer_trained_anew_that_is_better_is_said_to_be():
    peer = standing("peer", 0.85, way="retrained")
    found = advised([standing("ours", 0.8), peer])[NIGHTLY]
    assert name_of(found) == "peer"
    assert "5.0 points more than the ours, beyond the 0.0 points" in found.reason


@pytest.mark.parametrize(
    ("accuracy", "said"), [(0.81, "1.0 points more than the ours, which may be"), (0.7, "less")]
)
def test_a_peer_trained_anew_that_is_not_better_is_not_recommended(accuracy, said):
    peer = standing("peer", accuracy, spread=0.1, way="retrained")
    found = advised([standing("ours", 0.8), peer])[NIGHTLY]
    assert name_of(found) == "ours"
    assert said in found.reason


def test_who_was_told_all_classes_or_was_stopped_is_not_recommended():
    told = standing("told", 0.99, way="told")
    found = advised([told, stopped("late"), standing("ours", 0.5)])
    assert {name_of(advice) for advice in found.values()} <= {"ours", None}


def test_without_anybody_who_grows_it_says_so():
    (advice,) = recommend([standing("peer", 0.9, way="retrained")])
    assert advice.choice is None
    assert "came to the end" in advice.reason


def test_who_was_ahead_when_time_was_up_is_named():
    # Both have 90 % at 2 classes until the one that came to the end falls behind.
    (result,) = standing("ours", 0.5).results
    behind = replace(result, points=(replace(result.points[0], accuracy=0.6), *result.points[1:]))
    ours = replace(standing("ours", 0.5), results=(behind,))
    (remark,) = remarks_on_stopped([ours, stopped("late")])
    assert remark.startswith("the late had 90.0 % at 2 classes when its time was up")


def test_who_was_stopped_behind_is_not_named():
    assert remarks_on_stopped([standing("ours", 0.5), stopped("late")]) == []


PLAIN = Facts(
    n_train=10_000,
    n_test=1000,
    n_features=64,
    n_classes=100,
    examples_per_class=100,
    n_single=0,
    n_untested=0,
    scale_ratio=2.0,
)


def test_nothing_is_remarked_of_plain_data():
    assert remarks_on(PLAIN) == []


@pytest.mark.parametrize(
    ("fact", "value", "said"),
    [
        ("examples_per_class", 5, "at most 5 training examples"),
        ("n_classes", 5000, "There are 5000 classes"),
        ("scale_ratio", 400.0, "varies 400 times as much"),
        ("n_single", 3, "3 of 100 classes have a single training example"),
        ("n_untested", 2, "2 of 100 classes have no test samples"),
    ],
)
def test_what_the_data_ask_for_is_remarked(fact, value, said):
    (remark,) = remarks_on(Facts(**{**vars(PLAIN), fact: value}))
    assert said in remark
