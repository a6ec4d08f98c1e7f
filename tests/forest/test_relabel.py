"""Samples of a forest that get other classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow import NCMForestClassifier
from evergrow.forest.fitted import FittedForest
from evergrow.forest.relabel import relabel
from evergrow.labels import ClassList
from tests.forest.blobs import blobs


def forest(n_samples: int = 300, **options: Any) -> tuple[NCMForestClassifier, Any, Any]:
    """Four blobs, of which the first two are one class."""
    X, y = blobs(n_samples, range(4))
    model = NCMForestClassifier(5, min_samples_leaf=2, random_state=0, **options)
    return model.fit(X, np.maximum(y, 1)), X, y


def refined(model: NCMForestClassifier, y: Any, share: float = 0.3) -> FittedForest:
    """The forest once the first class has been told apart into the first two blobs."""
    labels = ClassList(np.array([1, 2, 3, 0]))
    ids = np.flatnonzero(y == 0).astype(np.int64)
    codes = np.full(len(ids), 3, dtype=np.int32)
    return relabel(model._fitted, labels, ids, codes, model._recipe(), share)[0]


def answers(fitted: FittedForest, X: Any) -> Any:
    return fitted.labels.classes[fitted.probabilities(X, 1).argmax(axis=1)]


def test_a_refined_class_is_told_apart() -> None:
    model, X, y = forest()
    assert (answers(refined(model, y), X) == y).mean() > 0.95


def test_refining_leaves_the_forest_before_as_it_was() -> None:
    model, X, y = forest()
    before = model.predict_proba(X)
    refined(model, y)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_every_count_follows_the_samples() -> None:
    model, _, y = forest()
    fitted = refined(model, y)
    fitted.forest.check()
    assert fitted.history.class_counts.tolist() == np.bincount(y)[[1, 2, 3, 0]].tolist()


def test_a_share_above_one_cuts_nothing() -> None:
    model, _, y = forest()
    labels = ClassList(np.array([1, 2, 3, 0]))
    ids = np.flatnonzero(y == 0).astype(np.int64)[:1]
    codes = np.array([3], dtype=np.int32)
    _, report = relabel(model._fitted, labels, ids, codes, model._recipe(), 2.0)
    assert report.n_cut == 0
    assert report.strategy == "refine"


def test_threads_do_not_change_a_refined_forest() -> None:
    model, X, y = forest()
    one = refined(model, y).probabilities(X, 1)
    model.set_params(n_jobs=2)
    np.testing.assert_array_equal(refined(model, y).probabilities(X, 1), one)


def test_a_few_first_samples_are_grown_anew_with_other_classes() -> None:
    model, X, y = forest(40)
    fitted = refined(model, y)
    fresh = NCMForestClassifier(5, min_samples_leaf=2, random_state=0)
    # Same columns as after refining.
    column = np.array([3, 0, 1, 2])
    fresh.fit(X, column[y])
    np.testing.assert_array_equal(fitted.probabilities(X, 1), fresh.predict_proba(X))
    assert fitted.history.n_updates == 1


def test_unknown_ids_are_named() -> None:
    model, _, _ = forest()
    ids, codes = np.array([3, 9999, 8888]), np.zeros(3, dtype=np.int32)
    with pytest.raises(ValueError, match=r"unknown sample ids: 9999, 8888; ids are in sample_ids_"):
        relabel(model._fitted, model._fitted.labels, ids, codes, model._recipe(), 0.3)


def test_refined_samples_may_lie_in_a_file(tmp_path: Any) -> None:
    model, X, y = forest(memory=tmp_path / "samples")
    assert (answers(refined(model, y), X) == y).mean() > 0.95
