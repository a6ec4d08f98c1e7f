"""Which classes come when, learners on a stream, and what is measured of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from evergrow import NCMForestClassifier
from evergrow.compare import (
    ClassStream,
    Measured,
    Retrained,
    follow,
    forgetting,
    load_dataset,
    model_bytes,
)

LABELS = np.repeat(["ant", "bee", "cow", "dog", "eel"], 3)
SORTED = ClassStream(initial=2, chunk=4, order="sorted")


@given(
    initial=st.integers(1, 6),
    chunk=st.integers(1, 7),
    n_classes=st.integers(6, 12),
    seed=st.integers(0, 99),
    blur=st.sampled_from([0.0, 0.3, 1.0]),
    disjoint=st.floats(0, 1),
)
def test_every_row_comes_once_after_its_class(initial, chunk, n_classes, seed, blur, disjoint):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(12), 5))
    stream = ClassStream(initial, chunk, n_classes, blur=blur, disjoint=disjoint, random_state=seed)
    steps = [*stream.steps(y)]
    assert [len(step.classes) for step in steps[:-1]] == [initial, *[chunk] * (len(steps) - 2)][
        : len(steps) - 1
    ]
    rows = np.concatenate([step.rows for step in steps])
    assert len(np.unique(rows)) == len(rows) == 5 * n_classes
    for step in steps:
        assert set(step.classes.tolist()) <= set(y[step.rows]) <= set(step.known.tolist())
    for before, after in itertools.pairwise(steps):
        assert after.known[: len(before.known)].tolist() == before.known.tolist()


def test_orders_depend_on_the_seed_only():
    first, again, other = (
        ClassStream(1, random_state=seed).ordered(np.arange(50)).tolist() for seed in (3, 3, 4)
    )
    assert first == again != other


def test_a_given_order_leaves_other_classes_out():
    steps = [*ClassStream(initial=1, order=["eel", "ant"]).steps(LABELS)]
    assert [step.classes.tolist() for step in steps] == [["eel"], ["ant"]]


@pytest.mark.parametrize("sizes", [(2, 5), [2, 5], np.array([2, 5])])
def test_it_is_measured_where_asked(sizes):
    steps = [*ClassStream(initial=1, measure_at=sizes).steps(LABELS)]
    assert [step.measured for step in steps] == [False, True, False, False, True]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"initial": 0}, "initial must be an integer of at least 1"),
        ({"initial": 2, "chunk": 0}, "chunk must be an integer of at least 1"),
        ({"initial": 6}, "begins with 6 classes, but there are only 5"),
        ({"initial": 2, "n_classes": 9}, "asks for 9 classes, the data have 5"),
        ({"initial": 1, "blur": 1.5}, "blur must be a float in"),
        ({"initial": 1, "order": ["ant", "yak"]}, "not in the data: .*yak"),
        ({"initial": 1, "order": ["ant", "ant"]}, "names a class twice"),
        ({"initial": 1, "order": "random"}, "order must be 'shuffled', 'sorted' or"),
        ({"initial": 1, "order": 3}, "order must be"),
        ({"initial": 2, "measure_at": [1]}, "asks for \\[1\\] classes"),
        ({"initial": 2, "measure_at": "ab"}, "measure_at must be numbers of classes"),
        ({"initial": 2, "measure_at": [1.5]}, "measure_at must be"),
    ],
)
def test_impossible_streams_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        list(ClassStream(**parameters).steps(LABELS))


def test_a_blurry_stream_brings_a_share_of_old_classes_late():
    y = np.repeat(np.arange(20), 50)
    plain, blurry = (
        [*ClassStream(5, 5, blur=blur, disjoint=0.5, random_state=1).steps(y)] for blur in (0, 0.4)
    )
    assert [s.classes.tolist() for s in plain] == [s.classes.tolist() for s in blurry]
    late = [y[s.rows][~np.isin(y[s.rows], s.classes)] for s in blurry]
    assert [len(each) > 0 for each in late] == [False, True, True, True]
    counts = np.bincount(np.concatenate(late), minlength=20)
    # Half of the classes come whole, and those of the last batch; others have 20 of 50 later.
    assert set(counts) == {0, 20}
    assert 10 <= (counts == 0).sum() <= 15


class Oracle:
    """Predicts the true labels, and notes what it was shown and how often it was asked."""

    def __init__(self, data):
        X, y = np.concatenate([data.X_train, data.X_test]), [*data.y_train, *data.y_test]
        self.truth = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
        self.shown, self.n_asked = [], 0

    def partial_fit(self, X, y):
        self.shown.append(sorted(set(y.tolist())))

    def predict(self, X):
        self.n_asked += 1
        return np.array([self.truth[row.tobytes()] for row in X])


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits")


def test_a_learner_is_shown_each_class_and_tested_on_known_ones(digits):
    oracle = Oracle(digits)
    measured = [*follow(oracle, digits, SORTED)]
    assert oracle.shown == [[0, 1], [2, 3, 4, 5], [6, 7, 8, 9]]
    found = [(m.n_classes, m.accuracy, len(m.class_accuracies)) for m in measured]
    assert found == [(2, 1.0, 2), (6, 1.0, 6), (10, 1.0, 10)]
    # An oracle counts no distances.
    assert np.isnan([measured[0].comparisons, measured[0].n_distances]).all()


def test_a_forest_reports_comparisons_and_distances(digits):
    forest = NCMForestClassifier(3, random_state=0)
    first, *_, last = follow(forest, digits, SORTED)
    assert last.comparisons == forest.comparisons(digits.X_test)
    assert last.n_distances > first.n_distances > 0


def test_a_retrained_forest_counts_every_training(digits):
    make = NCMForestClassifier(2, random_state=0)
    *_, before, last = follow(Retrained(lambda: make), digits, SORTED)
    alone = NCMForestClassifier(2, random_state=0).fit(digits.X_train, digits.y_train)
    found = last.n_distances - before.n_distances
    assert found == pytest.approx(alone.update_report_.n_comparisons, rel=0.2)


def test_ask_says_after_which_steps_a_learner_predicts(digits):
    stream = ClassStream(initial=1, order="sorted", measure_at=[5, 10])
    asked, accuracies = [], []
    for ask in ("always", "measured"):
        oracle = Oracle(digits)
        list(follow(oracle, digits, stream, ask=ask))
        asked.append(oracle.n_asked)
        retrained = Retrained(KNeighborsClassifier)
        accuracies.append([m.accuracy for m in follow(retrained, digits, stream, ask=ask)])
    assert asked == [12, 4]
    assert accuracies[0] == accuracies[1]


def test_a_class_that_gets_better_has_forgotten_nothing():
    def at(*accuracies):
        return Measured(len(accuracies), 0.5, 1.0, np.array(accuracies), 0.0, 0.0, np.nan, np.nan)

    assert forgetting([at(0.5), at(1.0, 1.0)]).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="at least one measurement"):
        forgetting([])


def test_bytes_grow_with_what_is_stored():
    small, large = (
        Retrained(KNeighborsClassifier).partial_fit(np.zeros((n, 8)), np.zeros(n))
        for n in (10, 1000)
    )
    assert model_bytes(large) - model_bytes(small) == pytest.approx(990 * 9 * 8, rel=0.01)
