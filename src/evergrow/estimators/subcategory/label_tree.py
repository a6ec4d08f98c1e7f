"""The growing tree of classes, and their numbers in the core.

The core has one list of classes for all levels. A class gets the next number when it first appears
and keeps it; within one call coarse classes come before finer ones, level by level, each sorted by
name. The paper has two levels, coarse and fine; a tree may have more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import list_names
from evergrow.foundation.labels import GONE, ClassList
from evergrow.storage.models.codec import Array, ClassNames, Fields, Several

# The class of a sample that is not known.
UNKNOWN = -1

Classes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Column:
    """Labels of one level: which rows have one, and these labels."""

    present: Mask
    labels: npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class LabelTree:
    """Classes on two or more levels, and the class above each one.

    A class without finer ones is predicted as itself. Classes that can be predicted have a column.
    A column keeps its name: that of a class stays when the class is divided, but is then never
    predicted. With two levels, a coarse and a fine class may share a name; with more, every class
    has its own. In both a class may be its own subcategory.

    Attributes
    ----------
    levels : tuple of ClassList
        Names of the classes of each level that has any, in the order of their numbers.
    parents : ndarray of shape (n_classes,)
        Class above each class; a class of the top level is its own parent.
    columns : ndarray
        Class of each column.
    """

    levels: tuple[ClassList, ...]
    parents: Classes
    columns: Classes

    _stored: ClassVar[Fields] = {
        "levels": Several(ClassNames("level")),
        "parents": Array(np.int32, ("nodes",), 0, "nodes", filled=True),
        "columns": Array(np.int32, (None,), 0, "nodes"),
    }

    @classmethod
    def empty(cls) -> LabelTree:
        """No classes yet."""
        return cls((), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))

    def __len__(self) -> int:
        """Count the classes of all levels."""
        return len(self.parents)

    @property
    def n_levels(self) -> int:
        """Number of levels, at least two."""
        return max(2, len(self.levels))

    @cached_property
    def is_coarse(self) -> Mask:
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
    def is_divided(self) -> Mask:
        """Whether each class has finer ones."""
        divided = np.zeros(len(self), dtype=bool)
        divided[self.parents[~self.is_coarse]] = True
        return divided

    @cached_property
    def is_finest(self) -> Mask:
        """Whether each class has no finer ones."""
        return ~self.is_divided

    @cached_property
    def is_bare(self) -> Mask:
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
    def coarse_classes(self) -> npt.NDArray[Any]:
        """Names of the classes on the top level, as an array."""
        return self.levels[0].classes if self.levels else np.zeros(0)

    @cached_property
    def names(self) -> list[Any]:
        """Name of every class by its number."""
        names: list[Any] = [None] * len(self)
        for k, level in enumerate(self.levels):
            for number, name in zip(self.ids_at(k), level.classes.tolist(), strict=True):
                names[number] = name
        return names

    def path_names(self, number: int) -> list[Any]:
        """Names of the classes from the top level down to a class."""
        return [self.names[c] for c in self.paths[number].tolist() if c != UNKNOWN]

    @cached_property
    def hierarchy(self) -> dict[Any, Any]:
        """Name of the class above each class that is not on the top level."""
        finer = np.argsort(self.depths, kind="stable")[len(self.coarse_ids) :].tolist()
        return {self.names[f]: self.names[self.parents[f]] for f in finer}

    @cached_property
    def numbers_by_name(self) -> dict[Any, int]:
        """Number of each class by its name; of classes with one name, the finest."""
        return {self.names[c]: c for c in np.argsort(self.depths, kind="stable").tolist()}

    @cached_property
    def upper_numbers(self) -> dict[Any, int]:
        """The same; of classes with one name, the coarsest."""
        return {self.names[c]: c for c in np.argsort(-self.depths, kind="stable").tolist()}

    def check_clear(self, names: Sequence[Any], advice: str) -> None:
        """Raise a ``ValueError`` if a name is that of two classes.

        They are one if the finer class is the only subcategory of the other.
        """
        n_finer = np.bincount(self.parents[~self.is_coarse], minlength=len(self))
        unclear = [
            name
            for name in dict.fromkeys(names)
            if (upper := self.upper_numbers.get(name)) != (lower := self.numbers_by_name.get(name))
            and (self.parents[lower] != upper or n_finer[upper] > 1)
        ]
        if unclear:
            are_names = (
                "is the name of a fine and of a coarse class"
                if len(unclear) == 1
                else "are names of fine and of coarse classes"
            )
            raise InvalidInputError(f"{list_names(unclear)} {are_names}; {advice}")

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
        """Names of classes, as an array; of objects if strings and numbers are mixed."""
        names = [self.names[c] for c in classes.tolist()]
        levels = [self.levels[k].classes for k in np.unique(self.depths[classes]).tolist()]
        kinds = {level.dtype.kind in "US" for level in levels}
        if len(kinds) == 1:
            found = np.array(names, dtype=None if kinds == {True} else np.result_type(*levels))
            if found.tolist() == names:
                return found
        found = np.empty(len(names), dtype=object)
        found[:] = names
        return found

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
        return LabelTree(self.levels[:1], own, own)

    def grow(self, given: Sequence[Column]) -> tuple[LabelTree, Classes]:
        """The tree with the classes of new samples added, and the finest class of each sample.

        ``given`` are the labels on each level. A sample with a class on one level has one on all
        levels above it.
        """
        n_levels = max(len(given), self.n_levels)
        paths = np.full((len(given[0].present), n_levels), UNKNOWN, dtype=np.int32)
        levels, size = list(self.levels), len(self)
        for k, column in enumerate(given):
            if not len(column.labels):
                continue
            if k == len(levels):
                level, codes = ClassList.of(column.labels)
                levels.append(level)
            else:
                levels[k], codes = levels[k].extend(column.labels)
            ids = self.ids_at(k)
            new = np.arange(size, size + len(levels[k]) - len(ids), dtype=np.int32)
            paths[column.present, k] = np.append(ids, new)[codes]
            size += len(new)
        parents = np.full(size, UNKNOWN, dtype=np.int32)
        parents[: len(self)] = self.parents
        parents[paths[:, 0]] = paths[:, 0]
        for above, own in pairwise(paths.T):
            is_new = (own != UNKNOWN) & (parents[own] == UNKNOWN)
            parents[own[is_new]] = above[is_new]
        grown = LabelTree(tuple(levels), parents, self.columns)
        _check_one_parent(grown, paths)
        _check_one_level(grown, len(self))
        finest = len(self) + np.flatnonzero(grown.is_finest[len(self) :])
        last = (paths != UNKNOWN).sum(axis=1) - 1
        return grown._with_columns(finest.tolist()), paths[np.arange(len(last)), last]

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
            have, them = ("has", "it") if len(divided) == 1 else ("have", "them")
            raise InvalidInputError(
                f"{list_names(divided)} {have} finer classes: name those in classes, or forget "
                f"{them} with all finer ones by forget(coarse=[{list_names(divided)}])"
            )
        found = self.columns[self.labels.columns_of(classes)].tolist()
        unknown = [name for name in coarse if name not in self.upper_numbers]
        # Raises an error that names the known ones.
        self.levels[0].columns_of(unknown)
        owners = [self.upper_numbers[name] for name in coarse]
        found += np.flatnonzero(np.isin(self.paths, owners).any(axis=1)).tolist()
        return sorted(set(found))

    def without(self, gone: list[int]) -> tuple[LabelTree, list[int]]:
        """The tree without some classes, and the new number of each old class, -1 if removed.

        The finer classes of a removed class must be removed with it. A class that loses all its
        finer ones is predicted as itself again.
        """
        kept = np.setdiff1d(np.arange(len(self)), gone)
        place = np.full(len(self), GONE, dtype=np.int32)
        place[kept] = np.arange(len(kept))
        of_level = [np.isin(self.ids_at(k), kept) for k in range(len(self.levels))]
        levels = zip(self.levels, of_level, strict=True)
        columns = place[self.columns]
        left = LabelTree(
            tuple(ClassList(level.classes[own]) for level, own in levels if own.any()),
            place[self.parents[kept]],
            columns[columns != GONE],
        )
        without_column = np.setdiff1d(np.flatnonzero(left.is_finest), left.columns)
        return left._with_columns(without_column.tolist()), place.tolist()

    def check_stored(self) -> None:
        """Raise a ``ValueError`` if it is not a hierarchy."""
        fits = _is_tree(self.parents) and len({*self.columns.tolist()}) == len(self.columns)
        if not fits or np.bincount(self.depths).tolist() != [*map(len, self.levels)]:
            raise InvalidInputError("its classes are not a hierarchy")
        if np.setdiff1d(np.flatnonzero(self.is_finest), self.columns).size:
            raise InvalidInputError("a class has no column")


def _check_one_parent(tree: LabelTree, paths: Classes) -> None:
    for above, own in pairwise(paths.T):
        wrong = np.flatnonzero((own != UNKNOWN) & (tree.parents[own] != above))
        if len(wrong):
            fine, given = own[wrong[0]], above[wrong[0]]
            name, *names = (tree.names[c] for c in (fine, tree.parents[fine], given))
            hint = "" if name != "" else "; if it stands for a missing label, use None"
            raise InvalidInputError(
                f"the class {name!r} belongs to two parents, {list_names(names)}; a class has "
                f"exactly one{hint}"
            )


def _check_one_level(tree: LabelTree, n_known: int) -> None:
    """Raise a ``ValueError`` if a deep tree has a name on two levels.

    With two levels, columns of labels say which is meant. A class may be its own subcategory. The
    first ``n_known`` classes were there before.
    """
    if tree.n_levels == 2:
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
