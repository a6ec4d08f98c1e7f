"""Which classes come when."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergrow.research import ClassStream

LABELS = np.repeat(["ant", "bee", "cow", "dog", "eel"], 3)


def test_the_first_batch_brings_the_initial_classes():
    first = next(ClassStream(initial=3, order="sorted").steps(LABELS))
    assert first.classes.tolist() == ["ant", "bee", "cow"]


def test_later_batches_bring_a_chunk_each_and_the_last_what_is_left():
    steps = [*ClassStream(initial=2, chunk=2).steps(LABELS)]
    assert [len(step.classes) for step in steps] == [2, 2, 1]


@given(
    initial=st.integers(1, 6),
    chunk=st.integers(1, 7),
    n_classes=st.integers(6, 12),
    seed=st.integers(0, 99),
)
def test_every_row_comes_once(initial, chunk, n_classes, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(12), 2))
    stream = ClassStream(initial, chunk, n_classes, random_state=seed)
    steps = [*stream.steps(y)]
    rows = np.concatenate([step.rows for step in steps])
    assert len(np.unique(rows)) == len(rows) == 2 * n_classes


def test_classes_known_grow_and_keep_their_order():
    steps = [*ClassStream(initial=1).steps(LABELS)]
    for before, after in itertools.pairwise(steps):
        assert after.known[: len(before.known)].tolist() == before.known.tolist()


def test_repetitions_come_in_different_orders():
    stream = ClassStream(initial=1, repetitions=2)
    orders = [stream.ordered(np.arange(50), repetition).tolist() for repetition in (0, 1)]
    assert orders[0] != orders[1]


def test_a_repetition_is_the_same_every_time():
    y = np.arange(50)
    orders = [ClassStream(initial=1, random_state=3).ordered(y).tolist() for _ in range(2)]
    assert orders[0] == orders[1]


def test_a_given_order_leaves_other_classes_out():
    steps = [*ClassStream(initial=1, order=["eel", "ant"]).steps(LABELS)]
    assert [step.classes.tolist() for step in steps] == [["eel"], ["ant"]]


def test_it_is_measured_where_asked():
    steps = [*ClassStream(initial=1, measure_at=[2, 5]).steps(LABELS)]
    assert [step.measured for step in steps] == [False, True, False, False, True]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"initial": 0}, "initial must be an integer of at least 1"),
        ({"initial": 2, "chunk": 0}, "chunk must be an integer of at least 1"),
        ({"initial": 6}, "begins with 6 classes, but there are only 5"),
        ({"initial": 2, "n_classes": 9}, "asks for 9 classes, the data have 5"),
        ({"initial": 1, "order": ["ant", "yak"]}, "not in the data: .*yak"),
        ({"initial": 1, "order": ["ant", "ant"]}, "names a class twice"),
        ({"initial": 1, "order": "random"}, "order must be 'shuffled', 'sorted' or"),
        ({"initial": 2, "measure_at": [1]}, "asks for \\[1\\] classes"),
    ],
)
def test_impossible_streams_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        list(ClassStream(**parameters).steps(LABELS))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"order": "sort"}, "order must be 'shuffled', 'sorted' or a sequence of labels"),
        ({"order": 3}, "order must be"),
        ({"measure_at": "ab"}, "measure_at must be numbers of classes, .* got 'ab'"),
        ({"measure_at": [0]}, "measure_at must be"),
        ({"measure_at": [1.5]}, "measure_at must be"),
        ({"measure_at": 5}, "measure_at must be"),
    ],
)
def test_wrong_parameters_are_refused_before_any_data(parameters, message):
    with pytest.raises(ValueError, match=message):
        ClassStream(initial=1, **parameters)


@pytest.mark.parametrize("sizes", [(2, 5), range(2, 6), np.array([2, 5])])
def test_sizes_to_measure_at_may_be_any_sequence(sizes):
    assert len([*ClassStream(initial=1, measure_at=sizes).steps(LABELS)]) == 5


def test_an_unknown_repetition_is_refused():
    with pytest.raises(ValueError, match="repetition must be from 0 to 1"):
        next(ClassStream(initial=1, repetitions=2).steps(LABELS, 2))


@given(
    blur=st.floats(0, 1),
    disjoint=st.floats(0, 1),
    chunk=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_in_a_blurry_stream_every_row_comes_once_and_never_before_its_class(
    blur, disjoint, chunk, seed
):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(12), 5))
    stream = ClassStream(2, chunk, blur=blur, disjoint=disjoint, random_state=seed)
    steps = [*stream.steps(y)]
    assert np.array_equal(np.sort(np.concatenate([step.rows for step in steps])), np.arange(60))
    for step in steps:
        assert set(y[step.rows]) <= set(step.known.tolist())
        assert set(step.classes.tolist()) <= set(y[step.rows])


def test_a_blurry_stream_mixes_old_and_new_classes():
    y = np.repeat(np.arange(20), 50)
    plain, blurry = (
        [*ClassStream(5, 5, blur=blur, disjoint=0.5, random_state=1).steps(y)] for blur in (0, 0.4)
    )
    for before, after in zip(plain, blurry, strict=True):
        assert before.classes.tolist() == after.classes.tolist()
    old = [np.isin(y[step.rows], step.classes, invert=True) for step in blurry]
    assert not old[0].any()
    assert all(each.any() for each in old[1:])
    late = [y[step.rows][each] for step, each in zip(blurry, old, strict=True)]
    counts = np.bincount(np.concatenate(late), minlength=20)
    # Half of the classes come whole, and those of the last batch; others have 20 of 50 later.
    assert set(counts) == {0, 20}
    assert 10 <= (counts == 0).sum() <= 15


def test_a_blurry_stream_is_the_same_every_time_and_another_for_another_seed():
    y = np.repeat(np.arange(8), 20)
    rows = [
        [step.rows.tolist() for step in ClassStream(2, blur=0.5, random_state=seed).steps(y)]
        for seed in (0, 0, 1)
    ]
    assert rows[0] == rows[1] != rows[2]


@pytest.mark.parametrize("name", ["blur", "disjoint"])
def test_a_share_above_one_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be a float in"):
        ClassStream(1, **{name: 1.5})
