"""Classes are renamed, and classes that get the same name are merged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from evergrow import NCMForestClassifier
from tests.conftest import FORESTS
from tests.estimators.forest.blobs import blobs, leaf_counts

NAMES = np.array(["ant", "bee", "cat", "dog"])
X, Y = blobs(160, range(4))


def named(kind: Any = NCMForestClassifier, n: int = 160) -> Any:
    return kind(3, min_samples_leaf=2, random_state=0).fit(X[:n], NAMES[Y[:n]])


def numbered() -> NCMForestClassifier:
    return NCMForestClassifier(3, min_samples_leaf=2, random_state=0).fit(X, Y)


@pytest.mark.parametrize("kind", FORESTS)
def test_another_name_changes_no_probability(kind: Any) -> None:
    forest = named(kind)
    before = forest.predict_proba(X)
    forest.rename_classes({"bee": "a bumblebee"})
    assert forest.classes_.tolist() == ["ant", "a bumblebee", "cat", "dog"]
    np.testing.assert_array_equal(forest.predict_proba(X), before)


@pytest.mark.parametrize("kind", FORESTS)
def test_classes_of_one_name_add_up(kind: Any) -> None:
    forest = named(kind)
    before = forest.predict_proba(X)
    forest.rename_classes({"bee": "pet", "dog": "pet"})
    forest._fitted.forest.check()
    assert forest.classes_.tolist() == ["ant", "pet", "cat"]
    joined = np.stack([before[:, 0], before[:, 1] + before[:, 3], before[:, 2]], axis=1)
    np.testing.assert_allclose(forest.predict_proba(X), joined, rtol=1e-12)
    counts = np.bincount(Y)
    assert leaf_counts(forest, 0).tolist() == [counts[0], counts[1] + counts[3], counts[2]]


def test_a_class_that_takes_the_name_of_another_joins_it() -> None:
    assert named().rename_classes({"dog": "bee"}).classes_.tolist() == ["ant", "bee", "cat"]
    assert named().rename_classes({"ant": "dog"}).classes_.tolist() == ["dog", "bee", "cat"]


def test_two_classes_may_swap_their_names() -> None:
    forest = named()
    before = forest.predict(X)
    forest.rename_classes({"ant": "dog", "dog": "ant"})
    swapped = np.array(["dog", "bee", "cat", "ant"])
    assert forest.predict(X).tolist() == swapped[np.searchsorted(NAMES, before)].tolist()


def test_numbers_take_numbers() -> None:
    forest = numbered().rename_classes({0: 70, 3: -1})
    assert forest.classes_.tolist() == [70, 1, 2, -1]
    assert forest.classes_.dtype.kind == "i"
    assert forest.rename_classes({70: 5, 1: 5, 2: 5, -1: 5}).classes_.tolist() == [5]


def test_no_names_change_nothing() -> None:
    assert named().rename_classes({}).classes_.tolist() == NAMES.tolist()


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ({"cow": "x"}, ValueError, "unknown class 'cow'; the model knows 'ant'"),
        ({"ant": 1}, TypeError, "all strings or all numbers"),
        (dict.fromkeys(NAMES.tolist(), 1), TypeError, "must be strings like the known ones"),
        ({"ant": None}, TypeError, "none missing"),
        ({"ant": "bee\0"}, ValueError, "cannot be stored exactly"),
    ],
    ids=str,
)
def test_wrong_names_are_refused_and_nothing_changes(
    names: dict[str, Any], error: type[Exception], message: str
) -> None:
    forest = named()
    state = dict(vars(forest))
    with pytest.raises(error, match=message):
        forest.rename_classes(names)
    assert vars(forest) == state


@pytest.mark.parametrize("name", [float("nan"), 2**70, "zero"])
def test_a_number_is_not_renamed_to_an_invalid_name(name: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"exactly|must be"):
        numbered().rename_classes({0: name})


def test_a_new_estimator_has_no_classes_to_rename() -> None:
    with pytest.raises(NotFittedError, match="classes to rename"):
        NCMForestClassifier().rename_classes({})


@pytest.mark.parametrize("n", [30, 160])
def test_updates_go_on_under_the_new_names(n: int) -> None:
    forest = named(n=n).rename_classes({"bee": "dog", "cat": "lion"})
    X_new, y_new = blobs(60, [0, 2, 9], seed=3)
    forest.partial_fit(X_new, np.array(["ant", "", "lion", *[""] * 6, "new"])[y_new])
    forest._fitted.forest.check()
    assert forest.classes_.tolist() == ["ant", "dog", "lion", "new"]
    assert leaf_counts(forest, 0).sum() == n + 60
    assert forest.forget(classes=["dog"]).classes_.tolist() == ["ant", "lion", "new"]


def test_what_the_last_call_learnt_stays() -> None:
    forest = named()
    ids, report = forest.sample_ids_, forest.update_report_
    forest.rename_classes({"ant": "x"})
    assert forest.sample_ids_ is ids
    assert forest.update_report_ is report
