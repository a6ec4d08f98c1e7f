"""Coarse and fine labels in every form they come in, and the tree of classes they make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import ModelFileError
from evergrow.estimators.subcategory.label_tree import LabelTree
from evergrow.estimators.subcategory.labels import read_labels
from tests.budget import budget
from tests.estimators.subcategory.levels import small, tree_entries, tree_of

EMPTY = LabelTree.empty()


def read(Y: Any, hierarchy: Any = None, tree: LabelTree = EMPTY) -> tuple[list[Any], list[Any]]:
    """Names of coarse and fine classes per row, None where the fine one is missing."""
    coarse, *finer = read_labels(Y, hierarchy, tree)
    fine: list[Any] = [None] * len(coarse.present)
    for column in finer:
        for row, name in zip(np.flatnonzero(column.present), column.labels, strict=True):
            fine[row] = name.item()
    return coarse.labels.tolist(), fine


def grown(Y: Any, tree: LabelTree = EMPTY, hierarchy: Any = None) -> LabelTree:
    return tree.grow(read_labels(Y, hierarchy, tree))[0]


@pytest.mark.parametrize(
    "Y",
    [
        [["cat", "lynx"], ["cat", None], ["dog", "pug"]],
        [("cat", "lynx"), ("cat", float("nan")), ("dog", "pug")],
        [["cat", "lynx"], ["cat", -1], ["dog", "pug"]],
        [["cat", "lynx"], ["cat", pd.NA], ["dog", "pug"]],
        [["cat", "lynx"], ["cat", pd.NaT], ["dog", "pug"]],
        np.array([["cat", "lynx"], ["cat", None], ["dog", "pug"]], dtype=object),
        pd.DataFrame({"kind": ["cat", "cat", "dog"], "race": ["lynx", None, "pug"]}),
        pd.DataFrame(
            {
                "kind": pd.Categorical(["cat", "cat", "dog"]),
                "race": pd.Categorical(["lynx", None, "pug"]),
            }
        ),
        pd.DataFrame([["cat", "lynx"], ["cat", None], ["dog", "pug"]], columns=["x", "x"]),
    ],
)
def test_a_missing_fine_label_may_be_written_in_many_ways(Y: Any) -> None:
    assert read(Y) == (["cat", "cat", "dog"], ["lynx", None, "pug"])


@pytest.mark.parametrize(
    "Y",
    [
        np.array([[0, 5], [0, -1], [1, 6]]),
        np.array([[0, 5], [0, np.nan], [1, 6]]),
        np.array([[0, 5], [0, -1], [1, 6]], dtype=np.int8),
        pd.DataFrame({"coarse": [0, 0, 1], "fine": pd.array([5, None, 6], dtype="Int64")}),
        pd.DataFrame({"coarse": [0, 0, 1], "fine": [5, None, 6]}),
        [[0, 5], [0, None], [1, np.int64(6)]],
        [[np.float64(0), 5], [0, None], [1, 6]],
    ],
)
def test_numbers_that_missing_ones_made_floats_are_whole_again(Y: Any) -> None:
    coarse, fine = read(Y)
    assert (coarse, fine) == ([0, 0, 1], [5, None, 6])
    assert {type(name) for name in coarse} == {int}


def test_each_level_has_a_kind_of_its_own() -> None:
    assert read([["cat", 5], ["dog", None]]) == (["cat", "dog"], [5, None])


def test_minus_one_is_a_class_where_the_hierarchy_says_so() -> None:
    assert read([[0, -1], [1, 6]], {-1: 0, 6: 1}) == ([0, 1], [-1, 6])
    tree = grown([[0, -1], [1, 6]], hierarchy={-1: 0, 6: 1})
    assert read([[0, -1]], tree=tree) == ([0], [-1])


def test_minus_one_as_a_string_is_a_class() -> None:
    assert read([["a", "-1"], ["b", None]]) == (["a", "b"], ["-1", None])


@pytest.mark.parametrize("spoilt", [None, float("nan"), -1])
def test_strings_that_numpy_made_of_missing_labels_are_refused(spoilt: Any) -> None:
    Y = np.array([["cat", "lynx"], ["cat", str(spoilt)]])
    with pytest.raises(ValueError, match="which NumPy makes of missing labels"):
        read(Y)
    assert read(Y, {"lynx": "cat", str(spoilt): "cat"})[1] == ["lynx", str(spoilt)]


def test_flat_labels_are_the_finest_that_is_known() -> None:
    hierarchy = {"lynx": "cat", "puma": "cat", "pug": "dog", "cow": "cow"}
    found = read(["lynx", "cat", "pug", "cow", "dog"], hierarchy)
    assert found == (["cat", "cat", "dog", "cow", "dog"], ["lynx", None, "pug", None, None])
    # {name: name} is a class of the top level, also one that others are below.
    assert read(["a", "b"], {"a": "a", "b": "a"}) == (["a", "a"], [None, "b"])
    tree = grown([["cat", "lynx"], ["dog", "pug"]])
    assert read(["lynx", "dog"], tree=tree) == (["cat", "dog"], ["lynx", None])
    assert read(pd.Series(["puma"]), {"puma": "cat"}, tree) == (["cat"], ["puma"])


def test_flat_labels_are_coarse_as_long_as_there_are_no_finer_ones() -> None:
    assert read(["cat", "dog"]) == (["cat", "dog"], [None, None])
    assert read([1, -1]) == ([1, -1], [None, None])
    assert read(["cow"], tree=grown(["cat", "dog"])) == (["cow"], [None])
    with pytest.raises(ValueError, match="'cow' is not a class of the hierarchy"):
        read(["cow"], tree=grown([["cat", "lynx"]]))


def test_one_column_of_a_table_holds_coarse_labels() -> None:
    assert read([["cat"], ["dog"]]) == (["cat", "dog"], [None, None])
    assert read(np.array([[3], [4]])) == ([3, 4], [None, None])


def test_the_hierarchy_fills_in_missing_coarse_labels() -> None:
    Y = [[None, "lynx"], ["dog", None], ["dog", "pug"]]
    assert read(Y, {"lynx": "cat", "pug": "dog"})[0] == ["cat", "dog", "dog"]
    tree = grown([["cat", "lynx"]])
    assert read([[None, "lynx"]], tree=tree)[0] == ["cat"]


@pytest.mark.parametrize(
    ("Y", "hierarchy", "message"),
    [
        (["lynx", None], None, "1 sample has no label on any level, in row 1; remove it"),
        ([["cat", "lynx"], ["dog", "lynx"]], None, "the class 'lynx' belongs to two parents"),
        ([[None, "lynx"]], None, "the label on level 0 is missing for samples of the class 'lynx'"),
        ([[None, None], ["a", "b"]], None, "1 sample has no label on any level, in row 0; remove"),
        ([["cat", "lynx"]], {"pug": "dog"}, "does not say which parent 'lynx' belongs to"),
        ([["dog", "lynx"]], {"lynx": "cat"}, "'lynx' belongs to two parents, 'cat' by the hier"),
        (["lynx", "cow"], {"lynx": "cat"}, "'cow' is not a class of the hierarchy"),
        ([None, None], {"lynx": "cat"}, "2 samples have no label on any level, the first in row 0"),
        ([["cat"], [None]], None, "1 sample has no label on any level"),
        ([["a", "b"], ["a"]], None, "got rows of different lengths"),
        (np.zeros((2, 2, 2)), None, "got 3 dimensions"),
        ([["cat", 0.5]], None, "classes must be integers or strings, got 0.5"),
        ([["cat", float("inf")]], None, "classes must be integers or strings, got inf"),
        ([["cat", 2**80]], None, "integers beyond 64 bits"),
        ([["cat", "x"]], {None: "cat"}, "hierarchy must not contain missing labels"),
    ],
)
def test_labels_that_do_not_add_up_are_refused(Y: Any, hierarchy: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        grown(Y, hierarchy=hierarchy)


@pytest.mark.parametrize(
    ("Y", "hierarchy", "message"),
    [
        ([["cat", "lynx"], [3, "pug"]], None, "all strings or all numbers"),
        ([["cat", "lynx"], ["dog", 3]], None, "all strings or all numbers"),
        ([["cat", "lynx"]], [("lynx", "cat")], "hierarchy must map fine classes to coarse ones"),
        ([["cat", "lynx"]], {"lynx": "cat", "pug": 3}, "all strings or all numbers"),
        (np.array([["2020", "2021"]], dtype="M8[s]"), None, "must be integers or strings"),
    ],
)
def test_labels_of_mixed_kinds_are_refused(Y: Any, hierarchy: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        grown(Y, hierarchy=hierarchy)


def test_a_hierarchy_that_contradicts_what_is_known_is_refused() -> None:
    tree = grown([["cat", "lynx"]])
    with pytest.raises(ValueError, match=r"puts 'lynx' under 'dog', but .* under 'cat'"):
        read(["lynx"], {"lynx": "dog"}, tree)


def test_a_flat_label_of_two_classes_is_unclear() -> None:
    tree = grown([["cat", "cow"], ["cow", "angus"]])
    assert read(["angus", "cat"], tree=tree) == (["cow", "cat"], ["angus", None])
    with pytest.raises(ValueError, match="'cow' is the name of a fine and of a coarse class"):
        read(["cow"], tree=tree)
    assert read(["ant"], tree=grown([["ant", "ant"]])) == (["ant"], ["ant"])


def test_classes_get_numbers_as_they_appear_and_keep_them() -> None:
    tree = grown([["dog", "pug"], ["cat", "lynx"], ["cow", None]])
    assert tree.names == ["cat", "cow", "dog", "lynx", "pug"]
    assert tree.parents.tolist() == [0, 1, 2, 0, 2]
    more = grown([["ant", None], ["cow", "angus"], ["cat", "bobcat"]], tree)
    assert more.names == [*tree.names, "ant", "angus", "bobcat"]
    assert more.parents.tolist() == [0, 1, 2, 0, 2, 5, 1, 0]
    assert more.hierarchy == {"lynx": "cat", "pug": "dog", "angus": "cow", "bobcat": "cat"}


def test_columns_stay_when_a_class_is_divided() -> None:
    tree = grown([["dog", "pug"], ["cat", "lynx"], ["cow", None]])
    assert tree.labels.classes.tolist() == ["cow", "lynx", "pug"]
    more = grown([["ant", None], ["cow", "angus"], ["cat", "bobcat"]], tree)
    assert more.labels.classes.tolist() == ["cow", "lynx", "pug", "ant", "angus", "bobcat"]


def test_a_class_that_is_its_own_subcategory_keeps_its_column() -> None:
    tree = grown([["cow", None], ["cat", "lynx"]])
    more = grown([["cow", "cow"]], tree)
    assert more.labels.classes.tolist() == tree.labels.classes.tolist() == ["cow", "lynx"]
    assert more.is_finest[more.columns].all()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([["cat", "lynx"]], [["cow", None], ["cat", "cow"]]),
        ([["cow", None], ["cat", "lynx"]], [["cat", "cow"]]),
        ([["cat", "cow"]], [["cow", None]]),
    ],
)
def test_a_name_that_would_be_ambiguous_is_refused(first: Any, second: Any) -> None:
    with pytest.raises(
        ValueError, match="'cow' would be a coarse class that is predicted as itself"
    ):
        grown(second, grown(first))


def test_names_of_both_levels_in_one_array_keep_their_kind() -> None:
    assert grown([["cow", None], ["cat", "lynx"]]).labels.classes.dtype.kind == "U"
    assert grown([[1, None], [0, 7]]).labels.classes.dtype == np.int64
    mixed = grown([["cow", None], ["cat", 7]]).labels.classes
    assert mixed.dtype == object
    assert mixed.tolist() == ["cow", 7]


def test_the_tree_loses_classes_and_divided_ones_are_whole_again() -> None:
    tree = grown([["dog", "pug"], ["cat", "lynx"], ["cat", "puma"], ["cow", None]])
    left, place = tree.without(tree.numbers_of(["lynx", "pug"], ["cow"]))
    assert left.names == ["cat", "dog", "puma"]
    assert place == [0, -1, 1, -1, -1, 2]
    assert left.labels.classes.tolist() == ["puma", "dog"]
    assert left.parents.tolist() == [0, 1, 0]


@settings(max_examples=budget(60))
@given(
    calls=st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3))), min_size=1),
        min_size=1,
        max_size=4,
    )
)
def test_numbers_columns_and_parents_never_change(calls: Any) -> None:
    tree = EMPTY
    for rows in calls:
        Y = [[c, None if f is None else 10 * c + 10 + f] for c, f in rows]
        after, coded = tree.grow(read_labels(Y, None, tree))
        assert after.names[: len(tree)] == tree.names
        assert after.parents[: len(tree)].tolist() == tree.parents.tolist()
        known = len(tree.columns)
        assert after.labels.classes[:known].tolist() == tree.labels.classes.tolist()
        assert set(np.flatnonzero(after.is_finest)) <= set(after.columns.tolist())
        paths = after.paths[coded].tolist()
        assert [after.names[c] for c, _ in paths] == [c for c, _ in Y]
        assert [None if f == -1 else after.names[f] for _, f in paths] == [f for _, f in Y]
        tree = tree_of(tree_entries(after))
        assert tree.names == after.names


@pytest.mark.parametrize(
    "change",
    [
        {"levels": None},
        {"levels": [None]},
        {"levels": [{"dtype": "<U", "values": ["cat", "dog"]}]},
        {"levels": [{"dtype": "<U", "values": [name]} for name in ("cat", "lynx", "pug")]},
        {"parents": [0, 0, 0, 1]},
        {"parents": [0, 1, 0, 9]},
        {"parents": [3, 1, 0, 0]},
        {"parents": [0, 1, 2, 0]},
        {"columns": [2, 2]},
        {"columns": [2]},
        {"columns": [2, 7]},
        {"columns": [2, -1]},
    ],
)
def test_a_damaged_tree_in_a_file_is_refused(change: Any) -> None:
    entry = tree_entries(grown([["cat", "lynx"], ["dog", "pug"]]))
    assert tree_of(dict(entry)).names == ["cat", "dog", "lynx", "pug"]
    with pytest.raises(ModelFileError):
        tree_of({**entry, **change})


@pytest.mark.parametrize("labels", [np.array([b"a", b"b"]), [b"a", b"b"]])
def test_bytes_are_refused_when_they_come(labels: Any) -> None:
    with pytest.raises(TypeError, match="labels must be integers or strings, got"):
        small().fit([[0.0], [1.0]], [[name, name] for name in labels])


def test_the_error_for_an_empty_string_in_two_coarse_classes_names_none() -> None:
    with pytest.raises(ValueError, match="stands for a missing label, use None"):
        small().fit([[0.0], [1.0]], [["a", ""], ["b", ""]])
