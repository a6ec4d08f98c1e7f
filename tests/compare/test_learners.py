"""The learners of a comparison, and how each is built."""

from importlib.util import find_spec

import pytest

import evergrow
from evergrow.compare import learners
from evergrow.compare.learners import choose, known_learners
from evergrow.compare.measurement import measure
from evergrow.compare.setup import make_setups
from tests.compare.made import mixture

OURS = [each for each in known_learners() if each.module.startswith("evergrow")]


@pytest.fixture(scope="module")
def setup():
    return make_setups(mixture(4, 8, n_train=30, n_test=20, distance=2.0))


@pytest.mark.parametrize(
    "learner", [each for each in known_learners() if each.in_quick], ids=lambda each: each.name
)
def test_every_learner_follows_the_stream_and_beats_chance(learner, setup):
    if not learner.is_installed:
        pytest.skip(f"{learner.module} is not installed")
    where = setup[learner.family == "river"]
    result = measure(learner, where, n_jobs=1)
    assert (result.points[-1].n_classes, result.stopped_at) == (4, None)
    # A single pass of gradients over one class at a time forgets the others.
    forgets = learner.way == "told" or learner.family == "river"
    assert result.points[-1].accuracy >= (0.2 if forgets else 0.6)
    assert result.n_bytes > 0


@pytest.mark.parametrize("learner", OURS, ids=lambda each: each.name)
def test_the_call_that_is_shown_makes_what_was_measured(learner):
    names = {n: getattr(room, n) for room in (evergrow, evergrow.estimators) for n in dir(room)}
    if learner.family == "peers":
        names = vars(pytest.importorskip(learner.module))
    shown = eval(learner.code, names)
    built = learner.build(seed=3, n_jobs=1)
    assert type(shown) is type(built)
    shared = {k: v for k, v in built.get_params(False).items() if k in ("n_jobs", "random_state")}
    assert repr(shown.set_params(**shared)) == repr(built)


def test_a_family_is_chosen_and_left_out_by_its_name():
    assert {each.family for each in choose(only=["river"])} == {"river"}
    assert "river" not in {each.family for each in choose(skip=["river"])}


@pytest.mark.parametrize("has_peers", [True, False])
def test_peers_are_known_only_if_they_are_installed(monkeypatch, has_peers):
    def find(name):
        if name.startswith("evergrow_papers"):
            return object() if has_peers else None
        return find_spec(name)

    monkeypatch.setattr(learners, "find_spec", find)
    assert ("ranpac" in [each.name for each in known_learners()]) is has_peers
    if not has_peers:
        with pytest.raises(ValueError, match="'ranpac' comes with the package evergrow-papers"):
            choose(only=["ranpac"])


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
