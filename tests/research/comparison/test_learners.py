"""The learners of a comparison, and how each is built."""

import numpy as np
import pytest

import evergrow
from evergrow.research import LEARNERS, choose, make_setup, measure, mixture, peers
from evergrow.research.comparison.learners import RunSettings

SETTING = RunSettings(seed=3, n_jobs=1, classes=np.arange(4))
FAST = [each for each in LEARNERS if each.in_quick and each.family != "river"]
RIVER = [each for each in LEARNERS if each.family == "river"]


@pytest.fixture(scope="module")
def setup():
    return make_setup(mixture(4, 8, n_train=30, n_test=20, distance=2.0))


def test_every_name_is_there_once():
    names = [each.name for each in LEARNERS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("learner", FAST, ids=lambda each: each.name)
def test_every_learner_finishes_and_beats_chance(learner, setup):
    result = measure(learner, setup, n_jobs=1)
    assert result.stopped_at is None
    # A single pass of gradients over one class at a time forgets the others.
    assert result.accuracy >= (0.2 if learner.way == "told" else 0.6)
    assert result.n_bytes > 0


@pytest.mark.parametrize("learner", RIVER, ids=lambda each: each.name)
def test_river_follows_the_stream(learner, setup):
    pytest.importorskip("river")
    result = measure(learner, setup.sample, n_jobs=1)
    assert result.points[-1].n_classes == 4
    assert result.accuracy > 0.3


@pytest.mark.parametrize(
    "learner",
    [each for each in LEARNERS if each.factory.package == "evergrow"],
    ids=lambda each: each.name,
)
def test_the_call_that_is_shown_makes_what_was_measured(learner):
    names = {name: getattr(evergrow, name) for name in evergrow.__all__} | vars(peers)
    shown = eval(learner.factory.code, names)
    built = learner.factory.build(SETTING)
    assert type(shown) is type(built)
    shown.set_params(
        **{k: v for k, v in built.get_params(False).items() if k in ("n_jobs", "random_state")}
    )
    assert repr(shown) == repr(built)


def test_seed_and_threads_reach_the_estimator():
    forest = choose(only=["random-forest"])[0].factory.build(SETTING)
    assert (forest.random_state, forest.n_jobs) == (3, 1)


def test_a_family_is_chosen_and_left_out_by_its_name():
    assert {each.family for each in choose(only=["river"])} == {"river"}
    assert "river" not in {each.family for each in choose(skip=["river"])}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"only": ["rigde"]}, "unknown learner 'rigde': did you mean ridge"),
        ({"only": ["lda"], "skip": ["lda"]}, "every learner was left out"),
    ],
)
def test_a_wrong_choice_is_refused(names, message):
    with pytest.raises(ValueError, match=message):
        choose(**names)
