"""The growing tree of classes, and their numbers in the core.

The core has one list of classes for all levels. A class gets the next number when it first appears
and keeps it; within one call coarse classes come before finer ones, level by level, each sorted by
name. The paper has two levels, coarse and fine; a tree may have more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.subcategory.labels.columns import Column, by_number, listed
from evergrow.estimators.subcategory.labels.sample_labels import SampleLabels
from evergrow.foundation.errors import InvalidInputError, ModelFileError
from evergrow.foundation.labels import GONE, ClassList
from evergrow.storage.models.header import class_list, classes_to_json

# The class of a sample whose fine class is not known.
UNKNOWN = -1

Classes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CodedLabels:
    """Numbers of the class of each sample on each level, -1 where it is missing.

    A sample with a class on one level has one on all levels above it.
    """

    paths: Classes

    @property
    def coarse(self) -> Classes:
        """The class on the top level."""
        return self.paths[:, 0]

    @property
    def fine(self) -> Classes:
        """The class on the second level, -1 where it is missing."""
        return self.paths[:, 1]

    @property
    def finest(self) -> Classes:
        """The finest known class of each sample."""
        last = (self.paths != UNKNOWN).sum(axis=1) - 1
        return np.asarray(self.paths[np.arange(len(last)), last], dtype=np.int32)


@dataclass(frozen=True, eq=False)
class LabelTree:
    """Classes on two or more levels, and the class above each one.

    A class without finer ones is predicted as itself. Classes that can be predicted have a column.
    A column keeps its name: that of a class stays when the class is divided, but is then never
    predicted.

    Attributes
    ----------
    coarse, fine : ClassList or None
        Names of the two upper levels, in the order of their numbers; None if there are none yet.
    parents : ndarray of shape (n_classes,)
        Class above each class; a class of the top level is its own parent.
    columns : ndarray
        Class of each column.
    deeper : tuple of ClassList
        Names of the levels below the fine one.
    """

    coarse: ClassList | None
    fine: ClassList | None
    parents: Classes
    columns: Classes
    deeper: tuple[ClassList, ...] = ()

    @classmethod
    def empty(cls) -> LabelTree:
        """No classes yet."""
        return cls(None, None, np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))

    def __len__(self) -> int:
        """Count the classes of all levels."""
        return len(self.parents)

    @property
    def lists(self) -> tuple[ClassList | None, ...]:
        """Names of all levels from the top down."""
        return (self.coarse, self.fine, *self.deeper)

    @cached_property
    def is_coarse(self) -> npt.NDArray[np.bool_]:
        """Whether each class is on the top level."""
        return np.equal(self.parents, np.arange(len(self)))

    @cached_property
    def depths(self) -> Classes:
        """Number of classes above each class."""
        depths, above = np.zeros(len(self), dtype=np.int32), self.parents
        at = np.arange(len(self), dtype=np.int32)
        while (moving := above[at] != at).any():
            depths += moving
            at = above[at]
        return depths

    @property
    def n_levels(self) -> int:
        """Number of levels, at least two."""
        return len(self.lists)

    @cached_property
    def paths(self) -> Classes:
        """The class of each class on every level down to its own, -1 below."""
        paths = np.full((len(self), self.n_levels), UNKNOWN, dtype=np.int32)
        at, depth = np.arange(len(self), dtype=np.int32), self.depths.copy()
        for _ in range(self.n_levels):
            paths[np.arange(len(self)), depth] = at
            at, depth = self.parents[at], np.maximum(depth - 1, 0)
        return paths

    @property
    def tops(self) -> Classes:
        """The class of each class on the top level."""
        return self.paths[:, 0]

    def ids_at(self, level: int) -> Classes:
        """Numbers of the classes on a level."""
        return np.flatnonzero(self.depths == level).astype(np.int32)

    @cached_property
    def coarse_ids(self) -> Classes:
        """Numbers of the classes on the top level."""
        return np.flatnonzero(self.is_coarse).astype(np.int32)

    @cached_property
    def is_divided(self) -> npt.NDArray[np.bool_]:
        """Whether each class has finer ones."""
        divided = np.zeros(len(self), dtype=bool)
        divided[self.parents[~self.is_coarse]] = True
        return divided

    @cached_property
    def is_finest(self) -> npt.NDArray[np.bool_]:
        """Whether each class has no finer ones."""
        return ~self.is_divided

    @cached_property
    def is_bare(self) -> npt.NDArray[np.bool_]:
        """Whether samples of a class count as such without a fine label.

        They do if the class has finer ones, or is on the top level and may get some.
        """
        return self.is_coarse | self.is_divided

    def strictly_above(self, classes: Classes) -> Classes:
        """All classes above any of these."""
        paths = self.paths[classes]
        own = np.arange(self.n_levels) == self.depths[classes][:, None]
        return np.unique(paths[(paths != UNKNOWN) & ~own])

    @property
    def levels(self) -> list[npt.NDArray[Any]]:
        """Names of the classes, for each level that has any."""
        return [level.classes for level in self.lists if level is not None]

    @property
    def coarse_classes(self) -> npt.NDArray[Any]:
        """Names of the classes on the top level, as an array."""
        return np.zeros(0) if self.coarse is None else self.coarse.classes

    @cached_property
    def names(self) -> list[Any]:
        """Name of every class by its number."""
        names: list[Any] = [None] * len(self)
        for k, level in enumerate(self.lists):
            if level is not None:
                for number, name in zip(self.ids_at(k), level.classes.tolist(), strict=True):
                    names[number] = name
        return names

    @cached_property
    def hierarchy(self) -> dict[Any, Any]:
        """Name of the class above each class that is not on the top level."""
        finer = np.argsort(self.depths, kind="stable")[len(self.coarse_ids) :].tolist()
        return {self.names[f]: self.names[self.parents[f]] for f in finer}

    def level_ids(self, level: int) -> Classes:
        """Numbers of the classes that can be predicted on a level.

        They are the classes of the level, and those above it that have a column: they had no finer
        ones when they came. On the last level they are the classes of all columns.
        """
        if level == self.n_levels - 1:
            return self.columns
        has_column = np.isin(np.arange(len(self)), self.columns)
        chosen = (self.depths == level) | ((self.depths < level) & has_column)
        return np.flatnonzero(chosen).astype(np.int32)

    def level_names(self, level: int) -> npt.NDArray[Any]:
        """Names of :meth:`level_ids`."""
        if level == 0:
            return self.coarse_classes
        if level == self.n_levels - 1:
            return self.labels.classes
        return self.named(self.level_ids(level))

    def named(self, classes: Classes) -> npt.NDArray[Any]:
        """Names of classes, as an array."""
        own = np.unique(self.depths[classes]).tolist()
        levels = [level.classes for k in own if (level := self.lists[k]) is not None]
        return mixed_names([self.names[c] for c in classes.tolist()], levels)

    @cached_property
    def labels(self) -> ClassList:
        """The classes that have a column."""
        return ClassList(self.named(self.columns))

    @property
    def core_labels(self) -> ClassList:
        """The numbers of all classes, which are the classes of the forest."""
        return ClassList(np.arange(len(self)))

    def coarse_level(self) -> LabelTree:
        """The coarse classes alone."""
        own = np.arange(len(self.coarse_ids), dtype=np.int32)
        return LabelTree(self.coarse, None, own, own)

    def grow(self, given: SampleLabels) -> tuple[LabelTree, CodedLabels]:
        """The tree with the classes of new samples added, and the numbers of their classes."""
        everywhere = np.ones(len(given), dtype=bool)
        columns = [Column(everywhere, given.coarse), given.fine, *given.deeper]
        n_levels = max(len(columns), self.n_levels)
        paths = np.full((len(given), n_levels), UNKNOWN, dtype=np.int32)
        lists: list[ClassList | None] = [*self.lists, *[None] * (n_levels - self.n_levels)]
        size = len(self)
        for k, column in enumerate(columns):
            lists[k], codes = _extended(lists[k], column.labels)
            ids = self.ids_at(k)
            new = np.arange(size, size + _count(lists[k]) - len(ids), dtype=np.int32)
            paths[column.present, k] = np.append(ids, new)[codes]
            size += len(new)
        parents = np.full(size, UNKNOWN, dtype=np.int32)
        parents[: len(self)] = self.parents
        parents[paths[:, 0]] = paths[:, 0]
        coded = CodedLabels(paths)
        parents = _with_parents(parents, coded)
        deeper = tuple(level for level in lists[2:] if level is not None)
        grown = LabelTree(lists[0], lists[1], parents, self.columns, deeper)
        _check_one_parent(grown, coded)
        _check_one_level(grown, len(self))
        finest = len(self) + np.flatnonzero(grown.is_finest[len(self) :])
        return grown._with_columns(finest.tolist()), coded

    def _with_columns(self, ids: list[int]) -> LabelTree:
        """Add columns for classes that can be predicted."""
        columns = self.columns.tolist()
        place = {self.names[c]: k for k, c in enumerate(columns)}
        for c in ids:
            name = self.names[c]
            taken = place.get(name)
            if taken is None:
                place[name] = len(columns)
                columns.append(c)
            elif columns[taken] == self.parents[c]:
                # A class that is its own subcategory: the column now means the fine class.
                columns[taken] = c
            else:
                self._refuse_name(name, columns[taken], c)
        return replace(self, columns=np.array(columns, dtype=np.int32))

    def _refuse_name(self, name: Any, first: int, second: int) -> None:
        fine = second if not self.is_coarse[second] else first
        owner = self.names[self.parents[fine]]
        raise InvalidInputError(
            f"{name!r} would be a coarse class that is predicted as itself and a fine class of "
            f"{owner!r}, so the prediction {name!r} would be ambiguous: rename one of them in the "
            f"labels, or forget one with forget(coarse=[{name!r}]) or forget(coarse=[{owner!r}])"
        )

    def numbers_of(self, classes: list[Any], coarse: list[Any]) -> list[int]:
        """Numbers of classes with a column, and of classes with all their finer ones."""
        finest = {self.names[c] for c in np.flatnonzero(self.is_finest).tolist()}
        names = {self.names[c] for c in np.flatnonzero(self.is_divided).tolist()} - finest
        divided = list(dict.fromkeys(name for name in classes if name in names))
        if divided:
            have, them = (
                by_number(len(divided), *words) for words in (("has", "have"), ("it", "them"))
            )
            raise InvalidInputError(
                f"{listed(divided)} {have} finer classes: name those in classes, or forget {them} "
                f"with all finer ones by forget(coarse=[{listed(divided)}])"
            )
        found = self.columns[self.labels.columns_of(classes)].tolist()
        if coarse and self.coarse is not None:
            # With two levels, a name may be that of a coarse and of a fine class.
            deeper = self.numbers_by_name if self.deeper else {}
            owners = [deeper[name] for name in coarse if name in deeper]
            top = [name for name in coarse if name not in deeper]
            owners += self.coarse_ids[self.coarse.columns_of(top)].tolist() if top else []
            found += np.flatnonzero(np.isin(self.paths, owners).any(axis=1)).tolist()
        return sorted(set(found))

    @property
    def numbers_by_name(self) -> dict[Any, int]:
        """Number of each class by its name; of a class that is its own subcategory, the finer."""
        return {self.names[c]: c for c in np.argsort(self.depths, kind="stable").tolist()}

    def without(self, gone: list[int]) -> tuple[LabelTree, list[int]]:
        """The tree without some classes, and the new number of each old class, -1 if removed.

        The finer classes of a removed class must be removed with it. A class that loses all its
        finer ones is predicted as itself again.
        """
        kept = np.setdiff1d(np.arange(len(self)), gone)
        place = np.full(len(self), GONE, dtype=np.int32)
        place[kept] = np.arange(len(kept))
        coarse, fine, *deeper = (
            _part(level, np.isin(self.ids_at(k), kept)) for k, level in enumerate(self.lists)
        )
        columns = place[self.columns]
        left = LabelTree(
            coarse,
            fine,
            place[self.parents[kept]],
            columns[columns != GONE],
            tuple(level for level in deeper if level is not None),
        )
        without_column = np.setdiff1d(np.flatnonzero(left.is_finest), left.columns)
        return left._with_columns(without_column.tolist()), place.tolist()

    def to_json(self) -> dict[str, Any]:
        """The tree for the header of a model file."""
        entry = {
            "coarse": None if self.coarse is None else classes_to_json(self.coarse.classes),
            "fine": None if self.fine is None else classes_to_json(self.fine.classes),
            "parents": self.parents.tolist(),
            "columns": self.columns.tolist(),
        }
        if self.deeper:
            entry["deeper"] = [classes_to_json(level.classes) for level in self.deeper]
        return entry

    @classmethod
    def from_json(cls, entry: Any) -> LabelTree:
        """Rebuild from :meth:`to_json`; raises a ``ModelFileError`` if anything is inconsistent."""
        entry = entry if isinstance(entry, dict) else {}
        coarse = class_list(entry, "coarse")
        fine = None if entry.get("fine") is None else class_list(entry, "fine")
        parents, columns = (_numbers(entry.get(name), name) for name in ("parents", "columns"))
        lower = entry.get("deeper", [])
        lower = lower if isinstance(lower, list) else [None]
        deeper = tuple(class_list({"deeper": level}, "deeper") for level in lower)
        n = len(parents)
        fits = bool((parents < n).all()) and _is_tree(parents)
        fits = fits and bool((columns < n).all()) and len(set(columns.tolist())) == len(columns)
        tree = cls(coarse, fine, parents, columns, deeper)
        if not fits or np.bincount(tree.depths, minlength=tree.n_levels).tolist() != [
            _count(level) for level in tree.lists
        ]:
            raise ModelFileError("the model file is inconsistent: its classes are not a hierarchy")
        if np.setdiff1d(np.flatnonzero(tree.is_finest), columns).size:
            raise ModelFileError("the model file is inconsistent: a class has no column")
        return tree


def mixed_names(names: list[Any], levels: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Names of some levels in one array; of objects if strings and numbers are mixed."""
    kinds = {level.dtype.kind in "US" for level in levels}
    if len(kinds) == 1:
        found = np.array(names, dtype=None if kinds == {True} else np.result_type(*levels))
        if found.tolist() == names:
            return found
    found = np.empty(len(names), dtype=object)
    found[:] = names
    return found


def _count(level: ClassList | None) -> int:
    return 0 if level is None else len(level)


def _part(level: ClassList | None, kept: npt.NDArray[np.bool_]) -> ClassList | None:
    return ClassList(level.classes[kept]) if level is not None and kept.any() else None


def _extended(
    level: ClassList | None, labels: npt.NDArray[Any]
) -> tuple[ClassList | None, Classes]:
    if not len(labels):
        return level, np.zeros(0, dtype=np.int32)
    return ClassList.of(labels) if level is None else level.extend(labels)


def _with_parents(parents: Classes, coded: CodedLabels) -> Classes:
    """Give new classes below the top level the class above that their samples have."""
    parents = parents.copy()
    for k in range(1, coded.paths.shape[1]):
        labelled = coded.paths[:, k] != UNKNOWN
        own, above = coded.paths[labelled, k], coded.paths[labelled, k - 1]
        is_new = parents[own] == UNKNOWN
        parents[own[is_new]] = above[is_new]
    return parents


def _check_one_parent(tree: LabelTree, coded: CodedLabels) -> None:
    for k in range(1, coded.paths.shape[1]):
        labelled = coded.paths[:, k] != UNKNOWN
        fine, coarse = coded.paths[labelled, k], coded.paths[labelled, k - 1]
        wrong = np.flatnonzero(tree.parents[fine] != coarse)
        if len(wrong):
            first = wrong[0]
            name, *names = (
                tree.names[c] for c in (fine[first], tree.parents[fine[first]], coarse[first])
            )
            hint = "" if name != "" else "; if it stands for a missing label, use None"
            kinds = ("class", "parents") if tree.deeper else ("fine class", "coarse classes")
            raise InvalidInputError(
                f"the {kinds[0]} {name!r} belongs to two {kinds[1]}, "
                f"{listed(names)}; a {kinds[0]} has exactly one{hint}"
            )


def _check_one_level(tree: LabelTree, n_known: int) -> None:
    """Raise a ``ValueError`` if a deep tree has a name on two levels.

    With two levels, columns of labels say which is meant. A class may be its own subcategory. The
    first ``n_known`` classes were there before.
    """
    if not tree.deeper:
        return
    first: dict[Any, int] = {}
    for c in np.argsort(tree.depths, kind="stable").tolist():
        other = first.setdefault(tree.names[c], c)
        if other not in (c, tree.parents[c]):
            if min(c, other) < n_known <= max(c, other):
                raise InvalidInputError(
                    f"the model knows {tree.names[c]!r} {_place(tree, min(c, other))}, but here it "
                    f"is {_place(tree, max(c, other))}; classes cannot be moved, and with three or "
                    "more levels every class needs a name of its own"
                )
            raise InvalidInputError(
                f"{tree.names[c]!r} is the name of a class on level {tree.depths[other]} and of "
                f"one on level {tree.depths[c]}; with three or more levels every class needs a "
                "name of its own: rename one of them"
            )


def _place(tree: LabelTree, number: int) -> str:
    """Where a class is, in words."""
    if tree.is_coarse[number]:
        return "on the top level"
    return f"on level {tree.depths[number]}, below {tree.names[tree.parents[number]]!r}"


def _is_tree(parents: Classes) -> bool:
    """Whether going up from any class ends on the top level."""
    at = parents
    for _ in range(len(parents).bit_length() + 1):
        at = at[at]
    return bool((parents[at] == at).all())


def _numbers(values: Any, name: str) -> Classes:
    whole = isinstance(values, list) and all(type(v) is int and 0 <= v < 2**31 for v in values)
    if not whole:
        raise ModelFileError(f"the model file is inconsistent: its {name} of classes are damaged")
    return np.array(values, dtype=np.int32)
