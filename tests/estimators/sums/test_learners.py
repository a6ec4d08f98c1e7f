"""Learners of sums are exact: any order and any calls, forgetting, merging and renaming."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from evergrow import NCMClassifier, NCMForestClassifier, RLSClassifier
from evergrow.estimators import ReLU
from tests.budget import budget
from tests.estimators.means.cases import METRICS, assert_same, blobs
from tests.estimators.model_files import reload

X, Y = blobs(200)
NAMES = np.array(["ant", "bee", "cat", "dog"])
LEARNERS: dict[str, Any] = {
    **METRICS,
    "rls": partial(RLSClassifier, regularization=1.0, recoding=0.5),
    "rls per class": partial(
        RLSClassifier, regularization=1.0, recoding=0.0, keep_class_statistics=True
    ),
    "rls random features": partial(
        RLSClassifier, regularization=1.0, recoding=0.5, features=ReLU(40), random_state=0
    ),
}
# Those whose sums alone decide: a learnt metric also depends on what the first call brought.
EXACT = [name for name in LEARNERS if name != "learnt"]
every_learner = pytest.mark.parametrize("name", LEARNERS)
every_exact = pytest.mark.parametrize("name", EXACT)


@every_exact
@settings(max_examples=budget(15))
@given(cuts=st.lists(st.integers(1, 199), max_size=8), seed=st.integers(0, 1000))
def test_any_split_in_any_order_is_all_at_once(name: str, cuts: list[int], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(200)
    model = LEARNERS[name]()
    for first, last in pairwise([0, *sorted(set(cuts)), 200]):
        rows = order[first:last]
        model.partial_fit(X[rows], Y[rows])
    assert_same(model, LEARNERS[name]().fit(X, Y), X)


@every_learner
@pytest.mark.parametrize("step", [1, 7, 100])
def test_forgotten_examples_were_never_learnt(name: str, step: int) -> None:
    model = LEARNERS[name]().fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    for first in range(100, 200, step):
        rows = slice(first, min(first + step, 200))
        model.forget(X[rows], Y[rows])
    assert_same(model, LEARNERS[name]().fit(X[:100], Y[:100]), X)


@every_learner
def test_a_listed_class_gets_its_column_and_is_not_predicted(name: str) -> None:
    model = LEARNERS[name]().partial_fit(X, Y, classes=[9, 2])
    assert model.classes_.tolist() == [0, 1, 2, 3, 9]
    assert (model.predict_proba(X)[:, 4] == 0).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert set(model.predict(X)) <= {0, 1, 2, 3}
    # One example is a mean; least squares needs a few to outweigh the other classes.
    n_new = 1 if name in METRICS else 9
    model.partial_fit(np.repeat(X[:1] + 50, n_new, axis=0), [9] * n_new)
    assert model.predict(X[:1] + 50).tolist() == [9]


@pytest.mark.parametrize("name", ["euclidean", "mahalanobis per class", "rls per class"])
def test_a_forgotten_class_leaves_no_trace(name: str) -> None:
    model = LEARNERS[name]().fit(X, Y).forget(classes=[2])
    assert model.classes_.tolist() == [0, 1, 3]
    assert_same(model, LEARNERS[name]().fit(X[Y != 2], Y[Y != 2]), X)
    assert model.partial_fit(X[Y == 2], Y[Y == 2]).classes_.tolist() == [0, 1, 3, 2]


@every_exact
def test_a_merged_model_is_one_trained_on_all_examples(name: str) -> None:
    here, there = Y < 2, Y >= 1
    ours = LEARNERS[name]().fit(X[here], Y[here])
    theirs = LEARNERS[name]().fit(X[there], Y[there])
    ours.merge(theirs)
    both = LEARNERS[name]().fit(X[here], Y[here]).partial_fit(X[there], Y[there])
    assert ours.classes_.tolist() == [0, 1, 2, 3]
    assert theirs.classes_.tolist() == [1, 2, 3]
    assert_same(ours, both, X)


@every_exact
def test_a_weight_counts_as_repetition(name: str) -> None:
    weights = np.random.default_rng(0).integers(0, 4, 200)
    weighted = LEARNERS[name]().fit(X, Y, weights)
    repeated = LEARNERS[name]().fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    moments = [model._fitted.moments for model in (weighted, repeated)]
    np.testing.assert_allclose(moments[0].means, moments[1].means, rtol=1e-9)
    np.testing.assert_allclose(
        weighted.predict_log_proba(X), repeated.predict_log_proba(X), rtol=1e-9, atol=1e-9
    )


@every_learner
def test_a_weight_of_zero_counts_as_absence(name: str) -> None:
    weights = (Y != 3) * (np.arange(200) % 3 > 0)
    kept = weights > 0
    weighted = LEARNERS[name]().fit(X, Y, weights)
    assert weighted.classes_.tolist() == [0, 1, 2]
    assert_same(weighted, LEARNERS[name]().fit(X[kept], Y[kept]), X)


@every_learner
def test_saving_does_not_change_the_model(name: str, tmp_path: Path) -> None:
    kept = LEARNERS[name]().fit(X[:100], Y[:100] % 3).partial_fit(X[100:103], Y[100:103])
    loaded = reload(kept, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), kept.predict_proba(X))
    for model in (kept, loaded):
        model.partial_fit(X[150:], Y[150:] + 5).forget(X[:20], Y[:20] % 3)
    assert loaded.classes_.tolist() == kept.classes_.tolist()
    assert_same(loaded, kept, X)


@every_learner
@settings(max_examples=budget(10))
@given(batches=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=9), min_size=2))
def test_columns_never_move(name: str, batches: list[list[int]]) -> None:
    random = np.random.default_rng(0)
    model, seen = LEARNERS[name](), []
    for batch in batches:
        model.partial_fit(random.normal(size=(len(batch), 3)), batch)
        seen += sorted(set(batch) - set(seen))
        assert model.classes_.tolist() == seen


@every_learner
def test_renamed_classes_join_with_their_examples(name: str) -> None:
    model = LEARNERS[name]().fit(X, Y).rename_classes({0: 7, 3: 7})
    assert model.classes_.tolist() == [7, 1, 2]
    joined = np.where((Y == 0) | (Y == 3), 7, Y)
    if name == "learnt":
        expected = NCMClassifier().fit(X, joined).means_[[2, 0, 1]]
        np.testing.assert_allclose(model.means_, expected, rtol=1e-9)
    else:
        assert_same(model, LEARNERS[name]().fit(X, joined), X)


def other_kind(model: Any) -> Any:
    """Return a new learner of sums of the other kind."""
    return RLSClassifier() if isinstance(model, NCMClassifier) else NCMClassifier()


@every_learner
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda m: m.forget(), ValueError, "examples .X and y., classes, or both"),
        (lambda m: m.forget(X), ValueError, "both X and y, or neither"),
        (lambda m: m.forget(y=NAMES[Y]), ValueError, "both X and y, or neither"),
        (lambda m: m.forget(X, classes=["ant"]), ValueError, "both X and y, or neither"),
        (lambda m: m.forget(X[:1], ["cow"]), ValueError, "unknown class 'cow'"),
        (lambda m: m.forget(X[:1], [1]), ValueError, "unknown class"),
        (lambda m: m.forget(X[:, :2], NAMES[Y]), ValueError, "2 features"),
        (
            lambda m: m.forget(X[Y == 1] + 1, ["bee"] * (Y == 1).sum()),
            ValueError,
            "'bee': these are",
        ),
        (lambda m: m.forget(classes=["cow"]), ValueError, "unknown class 'cow'"),
        (
            lambda m: m.forget(np.vstack([X, X]), ["bee"] * 400),
            ValueError,
            r"class 'bee': \d+ examples were learnt, 400 are to be forgotten",
        ),
        (
            lambda m: m.forget(X[:1], ["bee"], sample_weight=[100.0]),
            ValueError,
            r"class 'bee': examples with a total weight of \d+ were learnt, but a weight of 100",
        ),
        (
            lambda m: m.forget(X[:1] + 900, ["bee"]),
            ValueError,
            "class 'bee': these are not the examples that were learnt",
        ),
        (lambda m: m.forget(X, NAMES[Y]), ValueError, "forget would leave no examples"),
        (lambda m: m.forget(classes=NAMES), ValueError, "forget would leave no examples"),
        (lambda m: m.partial_fit(X, Y), TypeError, "must be strings like the known classes"),
        (
            lambda m: m.partial_fit(X, NAMES[Y], classes=np.array([["ant"]])),
            ValueError,
            "flat list",
        ),
        (lambda m: m.partial_fit(X[:, :2], NAMES[Y]), ValueError, "2 features"),
        (lambda m: m.rename_classes({"cow": "x"}), ValueError, "unknown class 'cow'"),
        (lambda m: m.rename_classes({"ant": 1}), TypeError, "all strings or all numbers"),
        (lambda m: m.rename_classes(["ant"]), TypeError, "names must map"),
        (
            lambda m: m.rename_classes(dict.fromkeys(NAMES.tolist(), 1)),
            TypeError,
            "strings like the known",
        ),
        (lambda m: m.merge("model"), TypeError, "merge needs another (NCM|RLS)Classifier, got str"),
        (lambda m: m.merge(NCMForestClassifier()), TypeError, "got NCMForestClassifier"),
        (lambda m: m.merge(other_kind(m)), TypeError, "another (NCM|RLS)Classifier, got (NCM|RLS)"),
        (
            lambda m: m.merge(other_kind(m).fit(X, NAMES[Y])),
            TypeError,
            "another (NCM|RLS)Classifier, got (NCM|RLS)",
        ),
        (lambda m: m.merge(type(m)()), NotFittedError, "no model to merge"),
    ],
)
def test_a_refused_change_leaves_all_as_it_was(
    name: str, change: Any, error: type[Exception], message: str
) -> None:
    model = LEARNERS[name]().fit(X, NAMES[Y])
    before, state = model.predict_proba(X), dict(vars(model))
    with pytest.raises(error, match=message):
        change(model)
    assert vars(model) == state
    np.testing.assert_array_equal(model.predict_proba(X), before)


@every_exact
def test_weight_lost_to_rounding_cannot_stay(name: str) -> None:
    first, *others = np.flatnonzero(Y == 1)
    weights = np.ones(200)
    weights[first] = 1e-18
    model = LEARNERS[name]().fit(X, NAMES[Y], sample_weight=weights)
    with pytest.raises(ValueError, match="'bee': what is left weighs no more than rounding errors"):
        model.forget(X[others], NAMES[Y[others]])
