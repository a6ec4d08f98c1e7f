"""Classes on three and more levels: labels, growing, predictions and files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import NCMMetric
from evergrow.estimators.subcategory.label_tree import LabelTree
from evergrow.estimators.subcategory.labels import read_labels
from evergrow.estimators.subcategory.methods import METHODS, Stacked
from evergrow.foundation.errors import ModelFileError
from tests.budget import budget
from tests.estimators.model_files import reload
from tests.estimators.subcategory.levels import (
    REFINABLE,
    Array,
    check_consistent,
    small,
    tree_entries,
    tree_of,
)

PARENTS = {
    "beagle": "dog",
    "pug": "dog",
    "lynx": "cat",
    "puma": "cat",
    "dog": "animal",
    "cat": "animal",
    "oak": "plant",
    "fir": "plant",
}
LEAVES = [name for name in PARENTS if name not in PARENTS.values()]
EMPTY = LabelTree.empty()
DEEP = [name for name, method in METHODS.items() if not isinstance(method, Stacked)]

deep = pytest.mark.parametrize("method", DEEP)
refinable = pytest.mark.parametrize("method", REFINABLE)

_RANDOM = np.random.default_rng(3)
_CENTRES = {name: 3 * _RANDOM.normal(size=5) for name in [*LEAVES, "puppy", "old", "fern"]}


def path(name: str) -> list[str]:
    return [*path(PARENTS[name]), name] if name in PARENTS else [name]


def draw(n: int, seed: int = 0, names: list[str] = LEAVES) -> tuple[Array, Array]:
    """Features and the finest class of each sample."""
    random = np.random.default_rng(seed)
    y = np.array([*names, *random.choice(names, n - len(names))])
    return np.stack([_CENTRES[name] for name in y]) + random.normal(size=(n, 5)), y


def partly(y: Array, seed: int = 1) -> list[str]:
    """The same labels on any level; two of each class stay as they are."""
    random = np.random.default_rng(seed)
    depth = random.integers(0, 3, len(y))
    for name in np.unique(y):
        depth[np.flatnonzero(y == name)[:2]] = 2
    return [path(name)[min(d, len(path(name)) - 1)] for name, d in zip(y, depth, strict=True)]


def columns(names: list[str]) -> list[list[str | None]]:
    """A column for each level."""
    return [[*path(name), None, None][:3] for name in names]


def grown(Y: Any, tree: LabelTree = EMPTY, hierarchy: Any = None) -> LabelTree:
    return tree.grow(read_labels(Y, hierarchy, tree))[0]


def test_classes_get_numbers_level_by_level() -> None:
    tree = grown(["beagle", "cat", "oak"], hierarchy=PARENTS)
    assert tree.names == ["animal", "plant", "cat", "dog", "oak", "beagle"]
    assert tree.parents.tolist() == [0, 1, 0, 0, 1, 3]
    assert tree.depths.tolist() == [0, 0, 1, 1, 1, 2]
    assert tree.labels.classes.tolist() == ["cat", "oak", "beagle"]
    more = grown(["lynx", "fir"], tree, PARENTS)
    assert more.names == [*tree.names, "fir", "lynx"]
    assert more.labels.classes.tolist() == ["cat", "oak", "beagle", "fir", "lynx"]
    assert more.hierarchy == {name: PARENTS[name] for name in more.names if name in PARENTS}
    assert [more.level_names(k).tolist() for k in range(3)] == [
        ["animal", "plant"],
        ["cat", "dog", "oak", "fir"],
        ["cat", "oak", "beagle", "fir", "lynx"],
    ]


def test_columns_and_flat_labels_say_the_same() -> None:
    names = ["beagle", "animal", "oak", "cat", "plant", "lynx"]
    flat, table = grown(names, hierarchy=PARENTS), grown(columns(names))
    assert tree_entries(flat) == tree_entries(table)
    holes = [[None, None, "beagle"], [None, "cat", None], ["plant", None, None]]
    assert grown(holes, hierarchy=PARENTS).names == ["animal", "plant", "cat", "dog", "beagle"]
    assert tree_entries(grown(holes[:1], flat)) == tree_entries(flat)


def test_numbers_may_stand_for_classes() -> None:
    tree = grown(np.array([[100, 10, 1], [100, 10, -1], [100, -1, -1], [200, 20, 2]]))
    assert tree.names == [100, 200, 10, 20, 1, 2]
    assert tree.labels.classes.dtype == np.int64


@pytest.mark.parametrize(
    ("Y", "hierarchy", "message"),
    [
        (["a"], {"a": "b", "b": "a"}, "hierarchy has a cycle, 'a' -> 'b' -> 'a'"),
        (["x"], {"x": "y", "y": "z", "a": "b", "b": "c", "c": "a"}, "hierarchy has a cycle"),
        (
            ["a", "d"],
            {"a": "b", "b": "c"},
            "'d' is not a class of the hierarchy; name the class above it",
        ),
        (["d", "e"], {"a": "b", "b": "c"}, "'d', 'e' are not classes of the hierarchy"),
        (["a", None], {"a": "b", "b": "c"}, "1 sample has no label on any level"),
        (
            [["a", "b", "c"], ["a", "d", "c"]],
            None,
            "the class 'c' belongs to two parents",
        ),
        ([["a", "b", "c"], ["d", "b", "e"]], None, "the class 'b' belongs to two parents"),
        ([["a", "b", "c"]], {"c": "d"}, "the class 'c' belongs to two parents, 'd' by the hier"),
        ([["a", "b", "c"], ["c", None, None]], None, "'c' is the name of a class on level 0 and"),
        ([["a", "b", "c"], ["a", None, "d"]], None, "the label on level 1 is missing .* 'd'"),
        ([["a", "b", "c"], [None, None, None]], None, "1 sample has no label on any level"),
        ([["a", "b", "c"], ["a", "b"]], None, "got rows of different lengths"),
    ],
)
def test_bad_hierarchies_are_refused(Y: Any, hierarchy: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        grown(Y, hierarchy=hierarchy)


@pytest.mark.parametrize(
    ("Y", "hierarchy", "message"),
    [
        (["beagle"], {"beagle": "cat"}, "hierarchy puts 'beagle' under 'cat'"),
        (["whale"], {"whale": "fish", "fish": "whale"}, "hierarchy has a cycle"),
        (["whale"], None, "'whale' is not a class of the hierarchy"),
        ([["animal", "cat", "beagle"]], None, "the class 'beagle' belongs to two parents"),
        (
            [["animal", "plant", None]],
            None,
            "knows 'plant' on the top level, but here it is on level 1, below 'animal'; classes "
            "cannot be moved",
        ),
        (
            [["beagle", None, None]],
            None,
            "knows 'beagle' on level 2, below 'dog', but here it is on the top level; classes",
        ),
        ([["animal", "beagle"]], None, "the class 'beagle' belongs to two parents, 'dog' by the"),
        ([["animal", "emu"]], {"fern": "plant"}, "does not say which parent 'emu' belongs to"),
        ([[None, "emu"]], None, "label on level 0 is missing for samples of the class 'emu'"),
        (
            ["beagle"],
            {"animal": "thing"},
            "puts 'animal' under 'thing', but the model knows it on the top level; classes cannot",
        ),
        (["beagle"], {"beagle": "cat"}, "but the model knows it under 'dog'; classes cannot be"),
        (["emu"], {"emu": "brid"}, r"under 'brid', which .* does not know.*\{'brid': 'brid'\} in"),
        (["emu"], {"emu": "brid", "brid": "thing"}, "puts 'brid' under 'thing', which the model"),
        ([[None, "emu"]], {"emu": "brid"}, "puts 'emu' under 'brid', which the model"),
        ([[None, None, "emu"]], {"emu": "brid"}, "the label on level 0 is missing .* 'brid'"),
    ],
)
def test_a_failed_update_leaves_the_model_unchanged(Y: Any, hierarchy: Any, message: str) -> None:
    X, y = draw(80)
    forest = small().fit(X, partly(y), hierarchy=PARENTS)
    before, learnt = forest.predict_proba(X), dict(vars(forest))
    with pytest.raises(ValueError, match=message):
        forest.partial_fit(X[:1], Y, hierarchy=hierarchy)
    assert vars(forest) == learnt
    np.testing.assert_array_equal(forest.predict_proba(X), before)


@deep
def test_every_method_learns_from_labels_on_any_level(method: str) -> None:
    X, y = draw(400)
    test, truth = draw(200, seed=5)
    forest = small(method, n_estimators=10).fit(X, partly(y), hierarchy=PARENTS)
    check_consistent(forest)
    assert forest.score(test, truth) > 0.85
    assert forest.score(test, columns(truth.tolist())) == forest.score(test, truth)
    assert (forest.predict(test, level=1) == [path(name)[1] for name in truth]).mean() > 0.85
    assert (forest.predict_coarse(test) == [path(name)[0] for name in truth]).mean() > 0.9
    same = small(method, n_estimators=10).fit(X, columns(partly(y)))
    np.testing.assert_array_equal(same.predict_proba(test), forest.predict_proba(test))


@deep
def test_probabilities_of_a_level_are_sums_of_the_finer_ones(method: str) -> None:
    X, y = draw(200)
    forest = small(method).fit(X, partly(y), hierarchy=PARENTS)
    fine = forest.predict_proba(X)
    for level, names in enumerate(forest.level_classes_):
        found = forest.predict_proba(X, level=level)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        for name, column in zip(names.tolist(), found.T, strict=True):
            own = [name in path(leaf) for leaf in forest.classes_.tolist()]
            np.testing.assert_allclose(column, fine[:, own].sum(axis=1))
    np.testing.assert_array_equal(found, fine)
    assert forest.hierarchy_ == PARENTS


def test_guesses_by_neighbours_go_down_too() -> None:
    X, y = draw(200)
    forest = small("nn-h").fit(X, partly(y), hierarchy=PARENTS)
    check_consistent(forest)
    assert forest.score(*draw(100, seed=4)) > 0.85
    forest.partial_fit(*draw(60, 2))
    forest.forget(classes=["pug"])
    check_consistent(forest)
    ids, guessed = forest.guesses()
    assert len(ids)
    assert "pug" not in guessed


def test_back_off_names_the_finest_class_that_is_sure_enough() -> None:
    X, y = draw(200)
    X = X + 2 * np.random.default_rng(0).normal(size=X.shape)
    forest = small().fit(X, partly(y), hierarchy=PARENTS)
    names = forest.predict(X, back_off=0.7).tolist()
    levels = [(forest.level_classes_[k].tolist(), forest.predict_proba(X, level=k)) for k in (2, 1)]
    for row, name in enumerate(names):
        sure = [found[p[row].argmax()] for found, p in levels if p[row].max() >= 0.7]
        assert name == (sure or [forest.predict_coarse(X[row : row + 1])[0]])[0]
    assert {len(path(name)) for name in names} == {1, 2, 3}


@deep
def test_new_classes_come_on_every_level(method: str) -> None:
    X, y = draw(300, names=["beagle", "pug", "lynx", "oak"])
    forest = small(method).fit(X, partly(y), hierarchy=PARENTS)
    before = forest.classes_.tolist()
    # A class next to known ones, one on each level, and one below a class without finer ones.
    more, names = draw(200, 1, ["puma", "fir", "fern", "puppy", "old", "beagle"])
    above = {"fern": "plant", "puppy": "pug", "old": "pug"}
    forest.partial_fit(more, names, hierarchy={**PARENTS, **above})
    check_consistent(forest)
    assert forest.classes_[: len(before)].tolist() == before
    assert len(forest.level_classes_) == 4
    assert {name: forest.hierarchy_[name] for name in above} == above
    assert forest.score(*draw(100, 7, ["puma", "fir", "puppy", "old", "lynx"])) > 0.8
    assert not forest.predict_proba(X)[:, before.index("pug")].any()
    np.testing.assert_allclose(forest.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("method", ["nn-h", "ridge-h"])
def test_samples_of_a_class_that_is_divided_are_guessed(method: str) -> None:
    X, y = draw(200, names=["beagle", "pug", "oak"])
    X = np.where((y == "pug")[:, None], draw(200, 3, ["puppy"])[0], X)
    forest = small(method).fit(X, y, hierarchy=PARENTS)
    assert len(forest.guesses()[0]) == 0
    more, names = draw(40, 1, ["puppy", "old"])
    forest.partial_fit(more, names, hierarchy={"puppy": "pug", "old": "pug"})
    ids, guessed = forest.guesses()
    assert ids.tolist() == np.flatnonzero(y == "pug").tolist()
    assert (guessed == "puppy").mean() > 0.9
    forest.forget(classes=["puppy", "old"])
    assert forest._fitted.unconfirmed.ids.tolist() == []
    assert (forest.predict(X[y == "pug"]) == "pug").mean() > 0.9
    check_consistent(forest)


@refinable
def test_stored_samples_are_refined_on_any_level(method: str) -> None:
    X, y = draw(300)
    names = [path(name)[0] if k < 40 else name for k, name in enumerate(partly(y))]
    forest = small(method).fit(X, names, hierarchy=PARENTS)
    ids = np.intersect1d(np.arange(40), forest.stored_ids_)
    forest.refine(ids[:10], [path(y[i])[1] for i in ids[:10]])
    forest.refine(ids[5:], y[ids[5:]])
    check_consistent(forest)
    assert forest.score(*draw(100, seed=4)) > 0.8
    stored = [i for i in forest.stored_ids_ if names[i] == "beagle"][:6]
    forest.refine(stored, ["puppy", "old"] * 3, hierarchy={"puppy": "beagle", "old": "beagle"})
    check_consistent(forest)
    assert forest.hierarchy_["old"] == "beagle"
    for labels, message in (
        (["oak"], "is below 'plant', but the sample is of 'animal'"),
        ([None], "must not be missing"),
        (["whale"], r"'whale' belongs is not clear: .* has the label 'puppy' so far; .* or hier"),
    ):
        with pytest.raises(ValueError, match=message):
            forest.refine(stored[:1], labels)
    with pytest.raises(ValueError, match="hierarchy has a cycle"):
        forest.refine(stored[:1], ["a"], hierarchy={"a": "b", "b": "a"})
    check_consistent(forest)


def test_refining_with_new_names_needs_the_class_above_them() -> None:
    X, y = draw(60, names=["beagle", "oak"])
    forest = small("hierarchical").fit(X, [[path(name)[0]] for name in y])
    ids = np.flatnonzero(y == "beagle")
    # With two levels, a sample with a coarse class alone leaves no choice.
    forest.refine(ids, ["dog"] * len(ids))
    assert forest.hierarchy_ == {"dog": "animal"}
    before = forest._fitted
    for labels, hierarchy in (
        (["beagle"], None),
        (["beagle"], {}),
        (["beagle"], {"beagle": "beagle"}),
        (["beagle"], {"pug": "dog"}),
    ):
        with pytest.raises(
            ValueError,
            match=r"'beagle' belongs .* hierarchy={'beagle': 'dog'} or hierarchy={'beagle': 'ani",
        ):
            forest.refine(ids[:1], labels, hierarchy=hierarchy)
    oaks = np.flatnonzero(y == "oak")
    # It is one of more levels, and "oak" may be on any of them.
    with pytest.raises(ValueError, match=r"'oak' belongs .* such as hierarchy={'oak': 'plant'}$"):
        forest.refine([ids[0], oaks[0]], ["pug", "oak"], hierarchy={"pug": "dog"})
    with pytest.raises(ValueError, match="puts 'pug' under 'dgo', which the model does not know"):
        forest.refine(ids[:1], ["pug"], hierarchy={"pug": "dgo"})
    assert forest._fitted is before
    # Next to "dog" if said so; a known name needs nothing.
    forest.refine(ids[:4], ["cat"] * 4, hierarchy={"cat": "animal"}).refine(ids[:2], ["dog"] * 2)
    forest.refine(ids[4:], ["beagle"] * len(ids[4:]), hierarchy={"beagle": "dog"})
    assert forest.hierarchy_ == {"dog": "animal", "cat": "animal", "beagle": "dog"}
    # With three levels, also for a sample of the top level.
    with pytest.raises(ValueError, match=r"'oak' belongs .* such as hierarchy={'oak': 'plant'}$"):
        forest.refine(oaks, ["oak"] * len(oaks))
    forest.refine(oaks, ["oak"] * len(oaks), hierarchy={"oak": "plant"})
    assert forest.hierarchy_["oak"] == "plant"
    check_consistent(forest)


@pytest.mark.parametrize(
    ("labels", "hierarchy", "is_deep"),
    [
        (["emu", "emu"], {"emu": "bird", "bird": "bird"}, False),
        (["emu", "bird"], {"emu": "bird"}, False),
        (["emu", "bird"], {"emu": "bird", "bird": "bird"}, False),
        ([["bird", "emu"], ["bird", None]], {"emu": "bird"}, False),
        ([["bird", "emu"], [None, "emu"]], {"emu": "bird"}, False),
        ([["bird", "emu"], ["bird", None]], None, False),
        (["emu", "bird"], {"emu": "bird", "bird": "thing", "thing": "thing"}, True),
        ([["thing", "bird", "emu"]] * 2, None, True),
    ],
)
def test_a_new_class_of_the_top_level_is_announced(
    labels: Any, hierarchy: Any, is_deep: bool
) -> None:
    tree = grown([["dog", "pug"], ["cat", None]])
    more = grown(labels, tree, hierarchy)
    above = {"bird": "thing", "emu": "bird"} if is_deep else {"emu": "bird"}
    assert more.hierarchy == {"pug": "dog", **above}
    assert more.coarse_classes.tolist() == ["cat", "dog", "thing" if is_deep else "bird"]


@pytest.mark.parametrize(
    "labels", [["emu", "pug"], [[None, "emu"], ["dog", "pug"]], [[None, "emu"], [None, "pug"]]]
)
def test_an_unknown_class_above_others_is_refused_in_updates(labels: Any) -> None:
    tree = grown([["dog", "pug"]])
    with pytest.raises(ValueError, match=r"puts 'emu' under 'brid', .* by {'brid': 'brid'} in"):
        grown(labels, tree, {"emu": "brid"})
    # What the labels do not use may be unknown, and so may all classes at first.
    assert grown(labels, EMPTY, {"emu": "brid", "pug": "dog"}).hierarchy["emu"] == "brid"
    assert grown(["pug"], tree, {"emu": "brid"}).hierarchy == {"pug": "dog"}


def test_answers_on_all_levels_and_which_is_sure_enough() -> None:
    X, y = draw(200)
    X = X + 2 * np.random.default_rng(0).normal(size=X.shape)
    forest = small().fit(X, [name if name != "oak" else "plant" for name in y], hierarchy=PARENTS)
    rows = np.arange(len(X))
    for back_off in (None, 0.0, 0.5, 0.7, 1.0):
        answers = forest.predict_levels(X, back_off=back_off)
        levels = np.array(answers.levels)
        answered = levels[answers.level, rows]
        np.testing.assert_array_equal(answered, forest.predict(X, back_off=back_off))
        for row, name in enumerate(answered):
            above = path(name)[: answers.level[row] + 1]
            assert levels[: len(above), row].tolist() == above
        for level in range(3):
            below = answers.level < level
            found = forest.predict(X, level=level)
            np.testing.assert_array_equal(levels[level, below], found[below])
        coarse, fine, is_fine = answers
        np.testing.assert_array_equal([coarse, fine], levels[[0, -1]])
        np.testing.assert_array_equal(is_fine, answers.level == 2)
        np.testing.assert_array_equal(fine, forest.predict(X))
        if back_off == 0.7:
            assert set(answers.level.tolist()) == {0, 1, 2}
    again = pickle.loads(pickle.dumps(answers))
    np.testing.assert_array_equal(again.levels, answers.levels)
    np.testing.assert_array_equal(again.level, answers.level)
    assert repr(again).startswith("LevelAnswers(levels=[array(['")
    much: Any = "much"
    with pytest.raises(ValueError, match="back_off must be"):
        forest.predict_levels(X, back_off=much)


def test_the_report_of_guesses_counts_every_sample_once() -> None:
    X, y = draw(300)
    forest = small().fit(X, partly(y), hierarchy=PARENTS)
    report = forest.guess_report_
    assert report.n_known + report.n_missing == 300
    assert report.n_known == sum(name in LEAVES for name in partly(y))
    assert report.n_guessed == report.n_missing == len(forest.guesses()[0])
    found = [(part.coarse, part.level) for part in report.coarse]
    assert found == [("animal", 0), ("plant", 0), ("cat", 1), ("dog", 1)]
    lines = str(report).splitlines()
    assert lines[0] == "class   level  known  missing  guessed  right"
    assert [line.split()[:2] for line in lines[1:5]] == [[name, str(k)] for name, k in found]
    assert lines[5].startswith(f"all            {report.n_known:5}  {report.n_missing:7}  ")
    assert len({line.index("  ", 22) for line in lines[1:]}) == 1
    # An update guesses again for what is known above its labels only.
    forest.partial_fit(X[:20], ["dog"] * 20)
    assert forest.guess_report_.n_missing == 20 + partly(y).count("animal")
    assert forest.guess_report_.n_guessed == forest.guess_report_.n_missing
    two = small().fit(X, [[path(name)[0], name if k % 3 else None] for k, name in enumerate(y)])
    assert str(two.guess_report_).startswith("coarse class  known  missing  guessed  right\n")
    assert {part.level for part in two.guess_report_.coarse} == {0}


def test_forgetting_a_class_in_the_middle_says_how() -> None:
    X, y = draw(100)
    forest = small().fit(X, y, hierarchy=PARENTS)
    before = forest._fitted
    for names, message in (
        (["dog"], r"'dog' has finer classes: .* forget it .* by forget\(coarse=\['dog'\]\)"),
        (["pug", "dog", "animal"], r"'dog', 'animal' have finer .* forget them"),
        (["whale"], "unknown class"),
    ):
        with pytest.raises(ValueError, match=message):
            forest.forget(classes=names)
    assert forest._fitted is before
    assert "pug" not in forest.forget(coarse=["dog"]).hierarchy_


def test_two_levels_become_three() -> None:
    X, y = draw(200, names=["beagle", "pug", "oak"])
    two = [[path(name)[-2], name] for name in y]
    forest = small().fit(X, two)
    assert len(forest.level_classes_) == 2
    more, names = draw(60, 1, ["puppy", "old"])
    forest.partial_fit(more, names, hierarchy={"puppy": "pug", "old": "pug"})
    assert [len(names) for names in forest.level_classes_] == [2, 3, 5]
    assert forest.score(*draw(60, 2, ["puppy", "old", "beagle"])) > 0.8


@deep
def test_a_class_is_forgotten_with_all_finer_ones(method: str) -> None:
    X, y = draw(300)
    forest = small(method).fit(X, partly(y), hierarchy=PARENTS)
    forest.forget(coarse=["dog"], classes=["lynx"])
    check_consistent(forest)
    assert forest.hierarchy_ == {"cat": "animal", "puma": "cat", "oak": "plant", "fir": "plant"}
    forest.forget(coarse=["cat"])
    # A class that lost all finer ones is predicted as itself.
    assert sorted(forest.classes_.tolist()) == ["animal", "fir", "oak"]
    assert len(forest.level_classes_) == 2
    check_consistent(forest)
    forest.partial_fit(X, y, hierarchy=PARENTS)
    check_consistent(forest)
    assert forest.score(X, y) > 0.7


def test_stacked_forests_have_two_levels() -> None:
    X, y = draw(100)
    with pytest.raises(ValueError, match=r"method='stacked' has two levels.*the classes have 3"):
        small("stacked").fit(X, y, hierarchy=PARENTS)
    forest = small("stacked").fit(X, [[path(name)[-2], name] for name in y])
    before = forest._fitted
    with pytest.raises(ValueError, match="method='stacked' has two levels"):
        forest.partial_fit(X[:2], ["puppy", "old"], hierarchy={"puppy": "pug", "old": "pug"})
    assert forest._fitted is before


def test_weights_of_classes_are_multiplied_along_the_path() -> None:
    X, y = draw(200)
    weights = {"animal": 2.0, "dog": 3.0, "pug": 5.0}
    forest = small(class_weight=weights).fit(X, y, hierarchy=PARENTS)
    request = forest._checked_request(forest._fitted, "update")
    found = request.forest_request(forest._fitted.tree).class_weight
    names = forest._fitted.tree.names
    assert [found[names.index(n)] for n in ("pug", "beagle", "cat", "oak")] == [30.0, 6.0, 2.0, 1.0]


@pytest.mark.parametrize("inference_only", [False, True])
@deep
def test_a_loaded_forest_goes_on_the_same(
    method: str, inference_only: bool, tmp_path: Path
) -> None:
    X, y = draw(150)
    forest = small(method).fit(X, partly(y), hierarchy=PARENTS)
    loaded = reload(forest, tmp_path, inference_only=inference_only)
    np.testing.assert_array_equal(loaded.predict_proba(X), forest.predict_proba(X))
    assert loaded.hierarchy_ == forest.hierarchy_
    assert [a.tolist() for a in loaded.level_classes_] == [
        a.tolist() for a in forest.level_classes_
    ]
    if not inference_only:
        more, names = draw(60, 1, ["puppy", "old", "lynx"])
        for model in (forest, loaded):
            model.partial_fit(more, names, hierarchy={"puppy": "pug", "old": "pug"})
        np.testing.assert_array_equal(loaded.predict_proba(X), forest.predict_proba(X))


@pytest.mark.parametrize(
    "change",
    [
        {"parents": [0, 1, 0, 0, 1, 5]},
        {"parents": [0, 1, 0, 5, 1, 3]},
        {"parents": [0, 1, 0, 0, 1, 0]},
        {"columns": [2, 4]},
    ],
)
def test_a_damaged_tree_in_a_file_is_refused(change: Any) -> None:
    entry = tree_entries(grown(["beagle", "cat", "oak"], hierarchy=PARENTS))
    assert tree_of(dict(entry)).names[-1] == "beagle"
    with pytest.raises(ModelFileError):
        tree_of({**entry, **change})


@settings(max_examples=budget(40))
@given(
    calls=st.lists(st.lists(st.integers(0, 39), min_size=1, max_size=6), min_size=1, max_size=4),
    seed=st.integers(0, 10**6),
)
def test_numbers_columns_and_parents_never_change(calls: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    # A class n has the parent above[n], which is smaller; the first three are on top.
    above = {n: int(random.integers(n)) if n > 2 else n for n in range(40)}
    tree = EMPTY
    for names in calls:
        after, coded = tree.grow(read_labels(names, above, tree))
        assert after.names[: len(tree)] == tree.names
        assert after.parents[: len(tree)].tolist() == tree.parents.tolist()
        known = len(tree.columns)
        assert after.labels.classes[:known].tolist() == tree.labels.classes.tolist()
        assert set(np.flatnonzero(after.is_finest)) <= set(after.columns.tolist())
        assert [after.names[c] for c in coded] == names
        tree = tree_of(tree_entries(after))
        assert tree.names == after.names
        np.testing.assert_array_equal(tree.paths, after.paths)


@settings(max_examples=budget(10))
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["more", "refine", "forget"]), st.integers(0, 10**6)),
        min_size=1,
        max_size=5,
    ),
    method=st.sampled_from(REFINABLE),
    first=st.integers(30, 90),
)
def test_whatever_happens_the_leaves_count_what_is_stored(
    steps: list[tuple[str, int]], method: str, first: int
) -> None:
    X, y = draw(first, seed=first)
    forest = small(method, n_estimators=2).fit(X, partly(y), hierarchy=PARENTS)
    truth = y.tolist()
    for what, seed in steps:
        random = np.random.default_rng(seed)
        if what == "more":
            X, y = draw(20, seed, random.choice(LEAVES, 3).tolist())
            forest.partial_fit(X, partly(y, seed), hierarchy=PARENTS)
            truth += y.tolist()
        elif what == "refine":
            stored = forest.stored_ids_
            ids = random.choice(stored, min(5, len(stored) - 1), replace=False)
            forest.refine(ids, [random.choice(path(truth[i])[1:]) for i in ids])
        else:
            forest.forget(samples=random.choice(forest.stored_ids_, 3, replace=False))
        check_consistent(forest)
        np.testing.assert_allclose(forest.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("level", ["fine", "coarse"])
def test_a_metric_learns_from_labels_of_three_levels(level: Any) -> None:
    X, y = draw(120)
    found = NCMMetric(level=level).fit(X, partly(y), hierarchy=PARENTS).transform(X)
    assert len(found) == 120
