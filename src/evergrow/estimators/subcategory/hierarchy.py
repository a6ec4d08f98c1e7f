"""The growing tree of coarse and fine classes, and their numbers in the core.

The core has one list of classes for both levels. A class gets the next number when it appears,
within one call coarse classes before fine ones and sorted by name, and never changes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.subcategory.given import GivenLabels
from evergrow.estimators.subcategory.label_columns import listed
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.labels import GONE, ClassList
from evergrow.storage.modelfile import class_list, classes_to_json

__all__ = ["UNKNOWN", "CodedLabels", "LabelTree", "mixed_names"]

# The class of a sample whose fine class is not known.
UNKNOWN = -1

Classes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CodedLabels:
    """By sample the number of its coarse class and of its fine one, -1 where that is missing."""

    coarse: Classes
    fine: Classes

    @property
    def finest(self) -> Classes:
        """The finest class that is known of each sample."""
        return np.where(self.fine == UNKNOWN, self.coarse, self.fine)


@dataclass(frozen=True, eq=False)
class LabelTree:
    """Coarse and fine classes, and which belongs to which.

    A coarse class without fine ones is predicted as itself. Classes that can be predicted have a
    column; a column keeps its name for good, so that of a coarse class stays when the class is
    divided and is then never predicted.

    Attributes
    ----------
    coarse, fine : ClassList or None
        Names of both levels, in the order of their numbers; None as long as there are none.
    parents : ndarray of shape (n_classes,)
        By class its coarse class; a coarse class is its own parent.
    columns : ndarray
        By column its class.
    """

    coarse: ClassList | None
    fine: ClassList | None
    parents: Classes
    columns: Classes

    @classmethod
    def empty(cls) -> LabelTree:
        """No classes yet."""
        return cls(None, None, np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))

    def __len__(self) -> int:
        """Count the classes of both levels."""
        return len(self.parents)

    @cached_property
    def is_coarse(self) -> npt.NDArray[np.bool_]:
        """By class whether it is a coarse one."""
        own: npt.NDArray[np.bool_] = self.parents == np.arange(len(self))
        return own

    @cached_property
    def coarse_ids(self) -> Classes:
        """Numbers of the coarse classes."""
        return np.flatnonzero(self.is_coarse).astype(np.int32)

    @cached_property
    def fine_ids(self) -> Classes:
        """Numbers of the fine classes."""
        return np.flatnonzero(~self.is_coarse).astype(np.int32)

    @cached_property
    def is_divided(self) -> npt.NDArray[np.bool_]:
        """By class whether it is a coarse one that has fine ones."""
        divided = np.zeros(len(self), dtype=bool)
        divided[self.parents[self.fine_ids]] = True
        return divided

    @cached_property
    def is_finest(self) -> npt.NDArray[np.bool_]:
        """By class whether no class is finer."""
        return ~self.is_divided

    @property
    def levels(self) -> list[npt.NDArray[Any]]:
        """Names of the levels that there are."""
        return [level.classes for level in (self.coarse, self.fine) if level is not None]

    @property
    def coarse_classes(self) -> npt.NDArray[Any]:
        """Names of the coarse classes, as an array."""
        return np.zeros(0) if self.coarse is None else self.coarse.classes

    @property
    def coarse_names(self) -> list[Any]:
        """Names of the coarse classes."""
        return [] if self.coarse is None else self.coarse.classes.tolist()

    @cached_property
    def names(self) -> list[Any]:
        """Name of every class by its number."""
        names: list[Any] = [None] * len(self)
        for level, ids in ((self.coarse, self.coarse_ids), (self.fine, self.fine_ids)):
            if level is not None:
                for number, name in zip(ids.tolist(), level.classes.tolist(), strict=True):
                    names[number] = name
        return names

    @cached_property
    def hierarchy(self) -> dict[Any, Any]:
        """Coarse class by fine class, by name."""
        return {self.names[f]: self.names[self.parents[f]] for f in self.fine_ids.tolist()}

    @cached_property
    def labels(self) -> ClassList:
        """The classes that have a column."""
        names = [self.names[c] for c in self.columns.tolist()]
        both = ((self.coarse, self.is_coarse), (self.fine, ~self.is_coarse))
        levels = [
            level.classes
            for level, is_of_level in both
            if level is not None and is_of_level[self.columns].any()
        ]
        return ClassList(mixed_names(names, levels))

    @property
    def core_labels(self) -> ClassList:
        """All classes by their numbers, as the forest knows them."""
        return ClassList(np.arange(len(self)))

    def coarse_level(self) -> LabelTree:
        """The coarse classes alone."""
        own = np.arange(len(self.coarse_ids), dtype=np.int32)
        return LabelTree(self.coarse, None, own, own)

    def grow(self, given: GivenLabels) -> tuple[LabelTree, CodedLabels]:
        """The tree with the classes of some samples, and the numbers of these."""
        coarse, coarse_codes = _extended(self.coarse, given.coarse)
        fine, fine_codes = _extended(self.fine, given.fine.labels)
        n_coarse, n_fine = _count(coarse), _count(fine)
        n_new = n_coarse - _count(self.coarse)
        n_known = len(self)
        coarse_ids = np.append(self.coarse_ids, n_known + np.arange(n_new)).astype(np.int32)
        n_new_fine = n_fine - _count(self.fine)
        fine_ids = np.append(self.fine_ids, n_known + n_new + np.arange(n_new_fine))
        coded = CodedLabels(coarse_ids[coarse_codes], np.full(len(given), UNKNOWN, dtype=np.int32))
        coded.fine[given.fine.present] = fine_ids[fine_codes]
        parents = np.arange(n_known + n_new + n_new_fine, dtype=np.int32)
        parents[:n_known] = self.parents
        parents[n_known + n_new :] = UNKNOWN
        grown = LabelTree(coarse, fine, _adopted(parents, coded), self.columns)
        _check_one_parent(grown, coded)
        return grown._with_columns(n_known), coded

    def _with_columns(self, n_known: int) -> LabelTree:
        """Columns for classes from ``n_known`` on that can be predicted."""
        columns = self.columns.tolist()
        place = {self.names[c]: k for k, c in enumerate(columns)}
        for c in (n_known + np.flatnonzero(self.is_finest[n_known:])).tolist():
            name = self.names[c]
            taken = place.get(name)
            if taken is None:
                place[name] = len(columns)
                columns.append(c)
            elif columns[taken] == self.parents[c]:
                # A class that is its own subcategory: the name goes on meaning it, only finer.
                columns[taken] = c
            else:
                self._refuse(name, columns[taken], c)
        return LabelTree(self.coarse, self.fine, self.parents, np.array(columns, dtype=np.int32))

    def _refuse(self, name: Any, first: int, second: int) -> None:
        fine = second if not self.is_coarse[second] else first
        owner = self.names[self.parents[fine]]
        raise ValueError(
            f"{name!r} would be a coarse class that is predicted as itself and a fine class of "
            f"{owner!r}, so that an answer {name!r} would not be clear: give one of them another "
            f"name when it is learnt, or forget one, by forget(coarse=[{name!r}]) or "
            f"forget(coarse=[{owner!r}])"
        )

    def numbers_of(self, classes: list[Any], coarse: list[Any]) -> list[int]:
        """Numbers of classes that have a column and of coarse classes with all their fine ones."""
        found = self.columns[self.labels.columns_of(classes)].tolist()
        divided = [self.names[c] for c in found if self.is_divided[c]]
        if divided:
            raise ValueError(
                f"{listed(divided)} have fine classes: name those, or name them as coarse classes"
            )
        if coarse and self.coarse is not None:
            owners = self.coarse_ids[self.coarse.columns_of(coarse)]
            found += np.flatnonzero(np.isin(self.parents, owners)).tolist()
        return sorted(set(found))

    def without(self, gone: list[int]) -> tuple[LabelTree, list[int]]:
        """The tree without some classes, and the new number of each old one, -1 if it is gone.

        The fine classes of a coarse one that goes must go with it. A coarse class that loses all
        its fine ones is predicted as itself again.
        """
        kept = np.setdiff1d(np.arange(len(self)), gone)
        place = np.full(len(self), GONE, dtype=np.int32)
        place[kept] = np.arange(len(kept))
        coarse, fine = (
            _part(level, np.isin(ids, kept))
            for level, ids in ((self.coarse, self.coarse_ids), (self.fine, self.fine_ids))
        )
        columns = place[self.columns]
        left = LabelTree(coarse, fine, place[self.parents[kept]], columns[columns != GONE])
        # Only those that have none yet: every class is asked again.
        homeless = np.setdiff1d(np.flatnonzero(left.is_finest), left.columns)
        return left._also(homeless.tolist()), place.tolist()

    def _also(self, ids: list[int]) -> LabelTree:
        place = {self.names[c]: c for c in self.columns.tolist()}
        for c in ids:
            if self.names[c] in place:
                self._refuse(self.names[c], place[self.names[c]], c)
        columns = np.append(self.columns, np.array(ids, dtype=np.int32))
        return LabelTree(self.coarse, self.fine, self.parents, columns)

    def to_json(self) -> dict[str, Any]:
        """The tree for the header of a model file."""
        return {
            "coarse": None if self.coarse is None else classes_to_json(self.coarse.classes),
            "fine": None if self.fine is None else classes_to_json(self.fine.classes),
            "parents": self.parents.tolist(),
            "columns": self.columns.tolist(),
        }

    @classmethod
    def from_json(cls, entry: Any) -> LabelTree:
        """Rebuild from :meth:`to_json`; a ``ModelFileError`` if anything is off."""
        entry = entry if isinstance(entry, dict) else {}
        coarse = class_list(entry, "coarse")
        fine = None if entry.get("fine") is None else class_list(entry, "fine")
        parents, columns = (_numbers(entry.get(name), name) for name in ("parents", "columns"))
        n = len(parents)
        fits = n == len(coarse) + _count(fine) and bool((parents < n).all())
        fits = fits and bool((columns < n).all()) and len(set(columns.tolist())) == len(columns)
        # A parent is coarse, that is, its own parent.
        fits = fits and bool((parents[parents] == parents).all())
        tree = cls(coarse, fine, parents, columns)
        if not fits or len(tree.coarse_ids) != len(coarse):
            raise ModelFileError("the model file is inconsistent: its classes form no hierarchy")
        if np.setdiff1d(np.flatnonzero(tree.is_finest), columns).size:
            raise ModelFileError("the model file is inconsistent: a class has no column")
        return tree


def mixed_names(names: list[Any], levels: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Names of two levels in one array: of objects where strings meet numbers."""
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


def _adopted(parents: Classes, coded: CodedLabels) -> Classes:
    """New fine classes get the coarse class that their samples have."""
    labelled = coded.fine != UNKNOWN
    orphans = parents[coded.fine[labelled]] == UNKNOWN
    parents = parents.copy()
    parents[coded.fine[labelled][orphans]] = coded.coarse[labelled][orphans]
    return parents


def _check_one_parent(tree: LabelTree, coded: CodedLabels) -> None:
    labelled = coded.fine != UNKNOWN
    fine, coarse = coded.fine[labelled], coded.coarse[labelled]
    wrong = np.flatnonzero(tree.parents[fine] != coarse)
    if len(wrong):
        first = wrong[0]
        names = [tree.names[c] for c in (tree.parents[fine[first]], coarse[first])]
        name = tree.names[fine[first]]
        hint = "" if name != "" else "; if it stands for a missing label, use None"
        raise ValueError(
            f"the fine class {name!r} belongs to two coarse classes, "
            f"{listed(names)}; a fine class has exactly one{hint}"
        )


def _numbers(values: Any, name: str) -> Classes:
    whole = isinstance(values, list) and all(type(v) is int and 0 <= v < 2**31 for v in values)
    if not whole:
        raise ModelFileError(f"the model file is inconsistent: {name} of classes are damaged")
    return np.array(values, dtype=np.int32)
