"""All experiments are found by name."""

import pytest

from evergrow.research import PAPERS, experiment_names, find_experiments


@pytest.mark.parametrize("name", experiment_names())
def test_every_experiment_says_what_it_shows(name):
    (experiment,) = find_experiments([name])
    assert experiment.name == name
    assert all(map(callable, (experiment.runs, experiment.measure, experiment.draw)))
    assert callable(experiment.judge)
    assert len(experiment.shows) > 20
    assert "\n" not in experiment.shows


@pytest.mark.parametrize("name", experiment_names())
def test_every_experiment_declares_the_columns_of_what_the_paper_prints(name):
    (experiment,) = find_experiments([name])
    measured = {*experiment.exact, *experiment.timed}
    for row in experiment.published:
        assert measured & set(row)
        # Words in no column of ours name the paper's own cases; numbers are compared.
        unknown = set(row) - {*experiment.keys, *measured}
        assert all(isinstance(row[name], str) for name in unknown)


def test_a_paper_stands_for_its_experiments():
    assert [e.name for e in find_experiments(["icra2017"])] == [*PAPERS[2].names]


def test_an_experiment_named_twice_is_done_once():
    assert len(find_experiments(["icra2017", "icra2017-fig1"])) == len(PAPERS[2].names)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cvpr2014-fig55", "did you mean cvpr2014-fig5"),
        ("nonsense", "evergrow experiment --list"),
        ("cvpr2014-fig1", "has nothing to measure"),
    ],
)
def test_an_unknown_name_is_refused_with_a_hint(name, message):
    with pytest.raises(ValueError, match=message):
        find_experiments([name])
