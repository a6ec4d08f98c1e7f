"""The clustering trees of the core compared with the reference implementation, node by node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evergrow._core import WordTrees
from tests.budget import budget
from tests.reference.erc_forest import Rules, Tree


def core_rules(rules: Rules):
    return {
        "supervised": rules.supervised,
        "max_trials": rules.max_trials,
        "min_score": rules.min_score,
        "max_words": rules.max_words or 0,
        "min_gain": rules.min_gain * np.log(2),
        "stop_early": rules.stop_early,
    }


def assert_same(arrays, tree: Tree):
    nodes = tree.nodes()
    place = {id(node): i for i, node in enumerate(nodes)}
    children = [place[id(node.children[0])] if node.children else 0 for node in nodes]
    assert arrays["child"].tolist() == children
    words = [-1 if node.children else node.word for node in nodes]
    assert arrays["word"].tolist() == words
    for i, node in enumerate(nodes):
        if node.children:
            assert arrays["feature"][i] == node.feature
            assert arrays["threshold"][i] == np.float32(node.threshold)


rules_strategy = st.builds(
    Rules,
    supervised=st.booleans(),
    max_trials=st.integers(1, 8),
    min_score=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
    max_words=st.one_of(st.none(), st.integers(1, 12)),
    min_gain=st.sampled_from([0.0, 0.02, 0.1]),
    stop_early=st.booleans(),
)


@settings(max_examples=budget(150))
@given(
    st.integers(0, 2**32), rules_strategy, st.integers(1, 40), st.integers(1, 5), st.integers(1, 3)
)
# A test without information, for which rounding gave a negative value.
@example(1, Rules(min_score=0.0), 21, 1, 1)
def test_core_and_twin_grow_and_extend_the_same_trees(seed, rules, n_rows, n_features, n_classes):
    random = np.random.default_rng(seed)
    X = random.integers(0, 6, (2 * n_rows, n_features)).astype(np.float32)
    y = random.integers(0, n_classes, 2 * n_rows)
    # The second half brings a new class.
    y[n_rows:] = np.where(random.random(n_rows) < 0.5, n_classes, y[n_rows:])
    codes = y.astype(np.int32)
    trees = WordTrees.stumps(2, n_features)
    twins = [Tree(seed, t) for t in range(2)]
    wider = Rules(**{**vars(rules), "max_words": rules.max_words and rules.max_words + 5})
    for update, (end, first_new, now) in enumerate(
        [(n_rows, 0, rules), (2 * n_rows, n_rows, wider)]
    ):
        trees = trees.grown(X[:end], codes[:end], first_new, core_rules(now), seed, update, 2)
        for arrays, twin in zip(trees.arrays, twins, strict=True):
            twin.learn(X[:end], y[:end], first_new, now)
            assert_same(arrays, twin)
        expected = np.transpose([twin.words(X) for twin in twins])
        assert trees.code(X, 1).tolist() == expected.tolist()


def a_tree():
    return {
        "feature": np.array([1, 0, 0], dtype=np.int32),
        "threshold": np.array([0.5, 0, 0], dtype=np.float32),
        "child": np.array([1, 0, 0], dtype=np.int32),
        "word": np.array([-1, 1, 0], dtype=np.int32),
    }


def test_a_tree_from_arrays_codes_as_they_say():
    trees = WordTrees.from_arrays([a_tree()], 2)
    rows = np.array([[9, 0.5], [9, 0.6]], dtype=np.float32)
    assert trees.code(rows, 1).tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("child", [0, 0, 0], "each word once"),
        ("child", [2, 0, 0], "a child link is out of range"),
        ("child", [-1, 0, 0], "a child link is out of range"),
        ("child", [1, 1, 0], "a child link is out of range"),
        ("word", [-1, 1, 1], "each word once"),
        ("word", [-1, 2, 0], "each word once"),
        ("word", [-1, -1, 0], "each word once"),
        ("word", [-1, 1], "differ in length"),
        ("feature", [2, 0, 0], "feature is out of range"),
        ("feature", [-1, 0, 0], "feature is out of range"),
        ("threshold", [np.nan, 0, 0], "not finite"),
        ("threshold", [np.inf, 0, 0], "not finite"),
    ],
)
def test_damaged_trees_are_refused(name, values, message):
    tree = a_tree()
    tree[name] = np.array(values, dtype=tree[name].dtype)
    with pytest.raises(ValueError, match=message):
        WordTrees.from_arrays([tree], 2)


def test_rows_of_another_width_are_refused():
    trees = WordTrees.from_arrays([a_tree()], 2)
    with pytest.raises(ValueError, match="width of the trees"):
        trees.code(np.zeros((1, 3), dtype=np.float32), 1)


def test_many_rows_are_coded_alike_by_one_thread_and_several():
    random = np.random.default_rng(0)
    X = random.normal(size=(9001, 7)).astype(np.float32)
    y = random.integers(0, 3, len(X)).astype(np.int32)
    rules = core_rules(Rules(max_trials=3, max_words=64))
    grown = [WordTrees.stumps(3, 7).grown(X, y, 0, rules, 1, 0, n) for n in (1, 3)]
    assert np.array_equal(grown[0].code(X, 1), grown[1].code(X, 3))
    assert grown[0].words_per_tree == [64, 64, 64]
