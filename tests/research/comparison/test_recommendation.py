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


def name_of(advice):
    return None if advice.choice is None else advice.choice.learner.name


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
    assert "5.0 points above the ours, more than the 0.4 points" in found.reason


@pytest.mark.parametrize(
    ("accuracy", "said"), [(0.81, "1.0 points above the ours, which may be"), (0.7, "below")]
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
    assert name_of(advised([constant, even])[EXACT]) == "even"


def test_who_always_gives_the_same_answer_is_not_recommended():
    constant = unbalanced("constant", [1.0] + [0.0] * 10, seconds=1e-6)
    assert constant.accuracy > 0.8
    (advice,) = recommend([constant])
    assert advice.choice is None
    assert "better than a constant prediction" in advice.reason
    worse_than_that = advised([constant, unbalanced("even", [0.2] * 11)])
    assert {name_of(advice) for advice in worse_than_that.values()} <= {"even", None}


def test_who_is_far_behind_is_not_level_even_if_two_classes_prove_nothing():
    best = answered("best", [answers(0.95), answers(0.9)], seconds=5)
    poor = answered("poor", [answers(0.3), answers(0.8)], seconds=0.01)
    assert name_of(advised([best, poor])[GENERAL]) == "best"


def test_of_updates_that_never_came_nothing_is_said():
    found = advised([standing(name, 0.8, seconds=math.nan) for name in "ab"])
    assert list(found) == [EXACT, SMALL, NEW]
    assert "per update" not in found[EXACT].reason


def test_those_who_answer_alike_are_said_to_be_as_accurate():
    found = advised(
        [
            standing("slow", 0.8, seconds=5.0),
            standing("fast", 0.8, seconds=0.01, n_bytes=10),
            standing("peer", 0.8, way="retrained"),
        ]
    )
    assert "as accurate as the slow, which takes 5 s per update" in found[GENERAL].reason
    assert found[SMALL].reason.endswith("80.0 % class mean: as accurate as the slow.")
    assert "The best retrained learner is as accurate as the slow: " in found[NIGHTLY].reason
    assert "0.0 points" not in " ".join(advice.reason for advice in found.values())


def test_who_was_ahead_when_time_was_up_is_named():
    # Both have 90 % at 2 classes until the one that came to the end falls behind.
    (result,) = standing("ours", 0.5).results
    behind = replace(result, points=(replace(result.points[0], class_mean=0.6), *result.points[1:]))
    ours = replace(standing("ours", 0.5), results=(behind,))
    (remark,) = remarks_on_stopped([ours, stopped("late")])
    assert remark.startswith("the late had 90.0 % at 2 classes when time ran out")


def test_who_was_stopped_behind_is_not_named():
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
    ("fact", "value", "said"),
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
def test_what_the_data_ask_for_is_remarked(fact, value, said):
    remarks = remarks_on(replace(PLAIN, **{fact: value}))
    assert any(said in remark for remark in remarks)
