"""Forests of coarse and fine classes that are trained, updated and refined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from evergrow import IGT
from evergrow.estimators import (
    Bootstrap,
    Hierarchical,
    Joint,
    Regularised,
    RidgeGuesser,
    Storage,
)
from evergrow.estimators.forest.strategy import STRATEGIES
from tests.budget import budget
from tests.estimators.model_files import reload
from tests.estimators.subcategory.levels import (
    HIERARCHY,
    REFINABLE,
    check_consistent,
    coarse_only,
    every_method,
    hidden,
    refinable,
    samples,
    small,
)


@every_method
def test_every_method_learns_most_fine_classes(method: str) -> None:
    X, Y = samples(400)
    X_test, Y_test = samples(300, seed=5)
    forest = small(method, n_estimators=10).fit(X, hidden(Y))
    assert forest.score(X_test, Y_test) > 0.85
    assert (forest.predict_coarse(X_test) == Y_test[:, 0]).mean() > 0.97
    check_consistent(forest)


def test_samples_without_fine_labels_help_and_guesses_help_more() -> None:
    X, y = load_digits(return_X_y=True)
    Y = np.column_stack([y % 2, y])
    given = hidden(Y, share=0.9)
    score = {
        method: small(method, n_estimators=20, min_samples_leaf=10)
        .fit(X[:1000], given[:1000])
        .score(X[1000:], Y[1000:])
        for method in ("fine-only", "hierarchical", "ridge-h")
    }
    assert score["fine-only"] + 0.02 < score["hierarchical"] < score["ridge-h"] - 0.01


@every_method
def test_all_fine_labels_known_is_full_supervision(method: str) -> None:
    X, Y = samples(200)
    forest = small(method).fit(X, Y)
    assert not hasattr(forest, "guess_report_")
    assert len(forest.guesses()[0]) == 0
    assert forest.score(X, Y) > 0.95


@every_method
def test_a_coarse_class_without_fine_ones_is_predicted_as_itself(method: str) -> None:
    X, Y = samples(300)
    Y = np.column_stack([Y[:, 0] + 100, Y[:, 1]])
    Y[Y[:, 0] == 103, 1] = -1
    forest = small(method).fit(X, Y)
    assert forest.classes_.tolist() == [103, *range(9)]
    assert (forest.predict(X[Y[:, 0] == 103]) == 103).mean() > 0.95


@pytest.mark.parametrize("method", ["fine-only", "stacked", "nn", "nn-h", "ridge-h"])
def test_a_method_that_needs_fine_labels_names_those_that_do_not(method: str) -> None:
    X, Y = samples(100)
    with pytest.raises(ValueError, match="method='joint' or method='hierarchical' learns the coar"):
        small(method).fit(X, coarse_only(Y))


@pytest.mark.parametrize("method", ["joint", "hierarchical"])
def test_coarse_labels_alone_are_learnt_and_refined_later(method: str) -> None:
    X, Y = samples(300)
    forest = small(method).fit(X, coarse_only(Y))
    assert forest.classes_.tolist() == [0, 1, 2, 3]
    assert (forest.predict(X) == Y[:, 0]).mean() > 0.95
    Y = np.column_stack([Y[:, 0], Y[:, 1] + 50])
    forest.refine(forest.sample_ids_, Y[:, 1])
    check_consistent(forest)
    assert forest.classes_.tolist() == [0, 1, 2, 3, *range(50, 62)]
    assert forest.score(X, Y) > 0.9
    assert not forest.predict_proba(X)[:, :4].any()


@every_method
@pytest.mark.parametrize("update", STRATEGIES)
def test_new_classes_of_both_levels_are_learnt_and_columns_stay(method: str, update: str) -> None:
    X, Y = samples(200, range(5))
    more, Y_more = samples(200, range(3, 12), seed=1)
    forest = small(method, update=STRATEGIES[update](refresh=0.0)).fit(X, hidden(Y))
    before = forest.classes_.tolist()
    forest.partial_fit(more, hidden(Y_more))
    check_consistent(forest)
    assert forest.classes_[: len(before)].tolist() == before
    assert forest.coarse_classes_.tolist() == [0, 1, 2, 3]
    assert forest.hierarchy_ == HIERARCHY
    least = 0.3 if update == "uls" else 0.8
    assert forest.score(*samples(200, seed=9)) > least
    probabilities = forest.predict_proba(more)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@every_method
def test_a_stream_from_the_first_sample_on(method: str) -> None:
    X, Y = samples(160, seed=3)
    forest = small(method)
    for k in range(0, 160, 8):
        forest.partial_fit(X[k : k + 8], hidden(Y[k : k + 8], share=0.5, seed=k))
        check_consistent(forest)
    assert forest.score(*samples(200, seed=9)) > 0.8
    assert forest._fitted.forest.history.n_seen == 160


def test_the_second_of_stacked_forests_is_grown_again_for_a_new_coarse_class() -> None:
    X, Y = samples(300, range(9))
    forest = small("stacked").fit(X, hidden(Y))
    trees = forest._fitted.forest
    forest.partial_fit(*samples(30, range(9), seed=1))
    assert forest.update_report_.n_refreshed == 0
    assert forest._fitted.stack.first.forest is not trees
    n_features = forest._fitted.forest.n_features
    more, Y_more = samples(60, range(9, 12), seed=2)
    forest.partial_fit(more, hidden(Y_more))
    assert forest.update_report_.n_refreshed == 5
    assert forest._fitted.forest.n_features == n_features + 1
    assert forest.n_features_in_ == X.shape[1]
    assert forest.stored_ids_.tolist() == list(range(390))
    assert forest.score(*samples(200, seed=9)) > 0.9


def test_stacked_forests_without_missing_labels_learn_a_new_coarse_class() -> None:
    X, Y = samples(200, range(6))
    forest = small("stacked").fit(X, Y).partial_fit(*samples(100, range(6, 12), seed=1))
    test, truth = samples(200, seed=9)
    assert (forest._fitted.stack.rows(test, 1)[:, 5:].argmax(axis=1) == truth[:, 0]).mean() > 0.9
    # From the first sample without a fine label on, the first forest learns from such ones alone.
    n_learnt = forest._fitted.stack.n_learnt
    assert n_learnt == 300
    given = hidden(Y, seed=3)
    forest.partial_fit(X, given)
    assert forest._fitted.stack.n_learnt == n_learnt + (given[:, 1] < 0).sum()
    forest.partial_fit(X, Y)
    assert forest._fitted.stack.n_learnt == n_learnt + (given[:, 1] < 0).sum()


def test_samples_are_forgotten_by_both_of_stacked_forests() -> None:
    X, Y = samples(300)
    given = hidden(Y)
    forest = small("stacked").fit(X, given)
    bare, known = (np.flatnonzero(given[:, 1] * sign > 0)[:5] for sign in (-1, 1))
    forest.forget(samples=bare)
    assert len(forest._fitted.stack.first.stored_ids) == (given[:, 1] < 0).sum() - 5
    forest.forget(samples=known)
    assert not np.isin([*bare, *known], forest.stored_ids_).any()
    check_consistent(forest)
    with pytest.raises(ValueError, match="forget got samples that are not stored"):
        forest.forget(samples=bare)
    with pytest.raises(ValueError, match="would leave no samples"):
        forest.forget(samples=np.intersect1d(np.flatnonzero(given[:, 1] >= 0), forest.stored_ids_))
    check_consistent(forest)


@refinable
def test_refining_divides_a_class_that_was_predicted_as_itself(method: str) -> None:
    X, Y = samples(300)
    Y = np.column_stack([Y[:, 0] + 100, Y[:, 1]])
    given = Y.copy()
    given[Y[:, 0] == 102, 1] = -1
    forest = small(method).fit(X, given)
    asked = forest.sample_ids_[Y[:, 0] == 102][::4]
    forest.refine(asked, Y[asked, 1])
    check_consistent(forest)
    assert {f: c for f, c in forest.hierarchy_.items() if c == 102} == {6: 102, 7: 102, 8: 102}
    column = forest.classes_.tolist().index(102)
    assert not forest.predict_proba(X)[:, column].any()
    assert forest.score(X, Y) > 0.85


@pytest.mark.parametrize("method", ["nn", "nn-h", "ridge-h"])
def test_more_fine_labels_make_better_guesses_of_the_rest(method: str) -> None:
    X, Y = samples(400)
    X = X + np.random.default_rng(1).normal(size=X.shape)
    forest = small(method).fit(X, hidden(Y, share=0.95))
    ids, guessed = forest.guesses()
    before = (guessed == Y[ids, 1]).mean()
    chosen = ids[::2]
    forest.refine(chosen, Y[chosen, 1])
    ids, guessed = forest.guesses()
    assert not np.isin(chosen, ids).any()
    assert (guessed == Y[ids, 1]).mean() > before
    check_consistent(forest)


def test_confirming_guesses_that_are_right_changes_no_tree() -> None:
    X, Y = samples(200)
    forest = small().fit(X, hidden(Y))
    before = forest.predict_proba(X)
    ids, guessed = forest.guesses()
    forest.refine(ids, guessed)
    assert len(forest.guesses()[0]) == 0
    np.testing.assert_array_equal(forest.predict_proba(X), before)


def test_a_new_batch_with_fine_labels_makes_old_guesses_better() -> None:
    X, Y = samples(300)
    X = X + np.random.default_rng(1).normal(size=X.shape)
    forest = small().fit(X, hidden(Y, share=0.97))
    ids, guessed = forest.guesses()
    before = (guessed == Y[ids, 1]).mean()
    more, Y_more = samples(300, seed=4)
    forest.partial_fit(more, Y_more)
    ids, guessed = forest.guesses()
    assert (guessed == Y[ids, 1]).mean() > before
    assert forest.guess_report_.n_guessed == len(ids)
    check_consistent(forest)


def test_samples_without_fine_labels_are_guessed_from_stored_ones() -> None:
    X, Y = samples(200)
    forest = small().fit(X, Y)
    more, Y_more = samples(100, seed=2)
    forest.partial_fit(more, coarse_only(Y_more))
    ids, guessed = forest.guesses()
    assert ids.tolist() == list(range(200, 300))
    assert (guessed == Y_more[:, 1]).mean() > 0.9


def test_the_method_may_change_where_the_forest_is_the_same() -> None:
    X, Y = samples(200)
    forest = small("hierarchical").fit(X, hidden(Y))
    assert len(forest.guesses()[0]) == 0
    more, Y_more = samples(100, seed=2)
    forest.set_params(method="ridge-h").partial_fit(more, hidden(Y_more))
    check_consistent(forest)
    ids, _ = forest.guesses()
    assert len(ids) == len(forest._fitted.unconfirmed.ids)
    forest.set_params(method="hierarchical").partial_fit(more, Y_more)
    assert len(forest.guesses()[0]) == 0
    forest.set_params(method="nn-h").partial_fit(more, Y_more)
    assert len(forest.guesses()[0]) == len(ids)


def test_a_method_of_another_forest_is_refused() -> None:
    X, Y = samples(100)
    forest = small("joint").fit(X, Y)
    with pytest.raises(ValueError, match=r"trained by 'joint': use one of \['joint'\]"):
        forest.set_params(method="ridge-h").partial_fit(X, Y)
    forest = small("stacked").fit(X, Y)
    with pytest.raises(ValueError, match=r"method='stacked' cannot refine: .* pass them to part"):
        forest.refine([0], [0])
    forest = small("fine-only").fit(X, Y)
    with pytest.raises(
        ValueError, match="method='fine-only' stores no samples without fine labels"
    ):
        forest.refine([0], [0])


def test_fine_only_leaves_out_what_it_cannot_use_and_ids_go_on() -> None:
    X, Y = samples(200)
    given = hidden(Y)
    forest = small("fine-only").fit(X, given)
    assert forest.stored_ids_.tolist() == np.flatnonzero(given[:, 1] >= 0).tolist()
    forest.partial_fit(X[:9], coarse_only(Y[:9]))
    forest.partial_fit(X[:3], Y[:3])
    assert forest.sample_ids_.tolist() == [209, 210, 211]
    assert forest.stored_ids_[-3:].tolist() == [209, 210, 211]


@pytest.mark.parametrize(
    ("ids", "labels", "message"),
    [
        (
            [0, 1],
            [[0, 1], [1, 2]],
            "fine_labels must be a flat list of one fine label .* 2 columns",
        ),
        ([999, 5], [0, 0], "refine got samples that are not stored: 999; ids are in sample_ids_"),
        ([0, 0], [0, 0], "ids must not name a sample twice"),
        ([0, 1], [0], "fine_labels must be a list of 2 labels, one for each id, got 1"),
        ([0], [None], "fine_labels must not be missing"),
        ([0], [-1], "fine_labels must not be missing"),
        ([0], [11], "the class 11 is below 3, but the sample is of 0: forget the sample"),
        ([12, 14], [77, 77], "the class 77 belongs to two parents, 3 and 2"),
        ([0.5], [0], "ids must be a list of integer ids"),
    ],
)
def test_labels_that_cannot_be_given_to_samples_are_refused(
    ids: Any, labels: Any, message: str
) -> None:
    X, Y = samples(100)
    forest = small().fit(X, hidden(Y))
    known = forest._fitted
    with pytest.raises(ValueError, match=message):
        forest.refine(ids, labels)
    assert forest._fitted is known


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@every_method
def test_a_failed_update_leaves_the_model_unchanged(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y = samples(100)
    forest = small(method).fit(X, hidden(Y))
    before, learnt = forest.predict_proba(X), dict(vars(forest))

    with monkeypatch.context() as patch:
        for name in ("changes.add_samples", "stacking.grow_forest"):
            patch.setattr(f"evergrow.estimators.subcategory.{name}", interrupt)
        with pytest.raises(KeyboardInterrupt):
            forest.partial_fit(X, np.column_stack([Y[:, 0], Y[:, 1] + 20]))
    assert vars(forest) == learnt
    np.testing.assert_array_equal(forest.predict_proba(X), before)
    forest.partial_fit(X, Y)
    check_consistent(forest)


@every_method
def test_the_number_of_threads_does_not_matter(method: str) -> None:
    X, Y = samples(200)
    one, two = (small(method, n_jobs=n).fit(X, hidden(Y)) for n in (1, 3))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    more, Y_more = samples(100, seed=2)
    for forest in (one, two):
        forest.partial_fit(more, hidden(Y_more))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    if method in REFINABLE:
        for forest in (one, two):
            forest.refine([0, 1, 2], [0, 1, 2])
        np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.parametrize(
    "options",
    [
        {"method": Hierarchical(guess="nn")},
        {"method": Hierarchical(guess=RidgeGuesser(scaling=1.0))},
        {"method": Joint(coarse_weight=10.0)},
        {"method": Joint(class_means="fine")},
        {"method": Hierarchical(smoothing=0.0)},
        {"splits": Regularised(10, n_assignments=10, scale=3.0, scoring_samples=20)},
        {"standardize": False},
        {"max_samples": Bootstrap()},
        {"max_samples": 0.5},
        {"storage": Storage(dtype="float16")},
        {"update": IGT(refresh=0.4)},
    ],
    ids=str,
)
def test_every_parameter_may_be_changed(options: dict[str, Any], tmp_path: Path) -> None:
    X, Y = samples(300)
    forest = small(**options).fit(X[:200], hidden(Y[:200]))
    forest.partial_fit(X[200:], hidden(Y[200:]))
    ids = forest._fitted.unconfirmed.ids[:20]
    forest.refine(ids, Y[ids, 1])
    assert forest.score(*samples(200, seed=4)) > 0.75
    loaded = reload(forest, tmp_path)
    assert loaded.get_params() == forest.get_params()


@settings(max_examples=budget(15))
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["more", "refine", "forget"]), st.integers(0, 10**6)),
        min_size=1,
        max_size=5,
    ),
    method=st.sampled_from(REFINABLE),
    # Five steps forget at most 15 samples, and 5 must be left to refine.
    first=st.integers(20, 90),
)
def test_whatever_happens_the_leaves_count_what_is_stored(
    steps: list[tuple[str, int]], method: str, first: int
) -> None:
    X, Y = samples(first, seed=first)
    forest = small(method, n_estimators=2).fit(X, hidden(Y))
    truth = Y[:, 1].tolist()
    for what, seed in steps:
        random = np.random.default_rng(seed)
        if what == "more":
            X, Y = samples(20, random.choice(15, 3) % 12, seed=seed)
            forest.partial_fit(X, hidden(Y, share=random.random(), seed=seed))
            truth += Y[:, 1].tolist()
        elif what == "refine":
            stored = forest.stored_ids_
            ids = random.choice(stored, min(5, len(stored) - 1), replace=False)
            forest.refine(ids, [truth[i] for i in ids])
        else:
            forest.forget(samples=random.choice(forest.stored_ids_, 3, replace=False))
        check_consistent(forest)
        np.testing.assert_allclose(forest.predict_proba(X).sum(axis=1), 1.0)


def test_flat_labels_with_a_hierarchy_are_the_same_as_two_columns() -> None:
    X, Y = samples(200)
    given = hidden(Y)
    names = {f: f"coarse {c}" for f, c in HIERARCHY.items()}
    flat = [f if f >= 0 else f"coarse {c}" for c, f in given.tolist()]
    flat = [str(name) for name in flat]
    both = [[f"coarse {c}", None if f < 0 else str(f)] for c, f in given.tolist()]
    one = small().fit(X, flat, hierarchy={str(f): c for f, c in names.items()})
    two = small().fit(X, both)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert one.hierarchy_ == two.hierarchy_


def test_few_samples_get_fine_classes_that_are_new() -> None:
    X, Y = samples(30, range(6))
    forest = small("hierarchical", min_samples_leaf=1).fit(X, coarse_only(Y))
    forest.refine(forest.sample_ids_, Y[:, 1] + 50)
    check_consistent(forest)
    assert (forest.predict(X) == Y[:, 1] + 50).mean() > 0.9


def test_listed_classes_get_a_column_before_their_first_sample() -> None:
    X = np.array([[0.0], [1.0], [8.0], [9.0]])
    forest = small("joint", min_samples_leaf=1)
    forest.partial_fit(X, ["a", "a", "c", "c"], classes=["a", "b", "c"])
    assert forest.classes_.tolist() == ["a", "b", "c"]
    assert not forest.predict_proba(X)[:, 1].any()
    forest.partial_fit([[20.0], [21.0]], ["b", "b"], classes=["d"])
    assert forest.classes_.tolist() == ["a", "b", "c", "d"]
    assert forest.predict([[21.0]]).tolist() == ["b"]


def test_listed_classes_need_the_class_above_if_there_are_finer_ones() -> None:
    X, Y = np.array([[0.0], [1.0], [8.0]]), [["a", "a1"], ["a", "a2"], ["b", "b1"]]
    parents = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
    forest = small().partial_fit(X, Y, parents, classes=list(parents))
    assert forest.classes_.tolist() == ["a1", "a2", "b1", "b2"]
    with pytest.raises(ValueError, match="'b3' is not a class of the hierarchy"):
        forest.partial_fit(X, Y, classes=["b3"])


def test_listed_classes_of_another_kind_are_refused() -> None:
    with pytest.raises(TypeError, match="labels must be strings like the known classes"):
        small("joint").partial_fit([[0.0], [1.0]], ["a", "b"], classes=[1, 2])
