"""The growing tree of coarse and fine classes, and their numbers in the core.

The core has one list of classes for both levels. A class gets the next number when it first
appears and keeps it; within one call coarse classes come before fine ones, each sorted by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.subcategory.labels.columns import listed
from evergrow.estimators.subcategory.labels.sample_labels import SampleLabels
from evergrow.foundation.errors import InvalidInputError, ModelFileError
from evergrow.foundation.labels import GONE, ClassList
from evergrow.storage.models.header import class_list, classes_to_json

# The class of a sample whose fine class is not known.
UNKNOWN = -1

Classes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CodedLabels:
    """Numbers of the coarse and the fine class of each sample, -1 if the fine one is missing."""

    coarse: Classes
    fine: Classes

    @property
    def finest(self) -> Classes:
        """The finest known class of each sample."""
        return np.where(self.fine == UNKNOWN, self.coarse, self.fine)


@dataclass(frozen=True, eq=False)
class LabelTree:
    """Coarse and fine classes, and the coarse class of each fine one.

    A coarse class without fine ones is predicted as itself. Classes that can be predicted have a
    column. A column keeps its name: that of a coarse class stays when the class is divided, but is
    then never predicted.

    Attributes
    ----------
    coarse, fine : ClassList or None
        Names of both levels, in the order of their numbers; None if there are none yet.
    parents : ndarray of shape (n_classes,)
        Coarse class of each class; a coarse class is its own parent.
    columns : ndarray
        Class of each column.
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
        """Whether each class is a coarse one."""
        return np.equal(self.parents, np.arange(len(self)))

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
        """Whether each class is a coarse one with fine ones."""
        divided = np.zeros(len(self), dtype=bool)
        divided[self.parents[self.fine_ids]] = True
        return divided

    @cached_property
    def is_finest(self) -> npt.NDArray[np.bool_]:
        """Whether each class has no finer ones."""
        return ~self.is_divided

    @property
    def levels(self) -> list[npt.NDArray[Any]]:
        """Names of the classes, for each level that has any."""
        return [level.classes for level in (self.coarse, self.fine) if level is not None]

    @property
    def coarse_classes(self) -> npt.NDArray[Any]:
        """Names of the coarse classes, as an array."""
        return np.zeros(0) if self.coarse is None else self.coarse.classes

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
        """Name of the coarse class of each fine class."""
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
        """The numbers of all classes, which are the classes of the forest."""
        return ClassList(np.arange(len(self)))

    def coarse_level(self) -> LabelTree:
        """The coarse classes alone."""
        own = np.arange(len(self.coarse_ids), dtype=np.int32)
        return LabelTree(self.coarse, None, own, own)

    def grow(self, given: SampleLabels) -> tuple[LabelTree, CodedLabels]:
        """The tree with the classes of new samples added, and the numbers of their classes."""
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
        grown = LabelTree(coarse, fine, _with_parents(parents, coded), self.columns)
        _check_one_parent(grown, coded)
        new = n_known + np.flatnonzero(grown.is_finest[n_known:])
        return grown._with_columns(new.tolist()), coded

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
        return LabelTree(self.coarse, self.fine, self.parents, np.array(columns, dtype=np.int32))

    def _refuse_name(self, name: Any, first: int, second: int) -> None:
        fine = second if not self.is_coarse[second] else first
        owner = self.names[self.parents[fine]]
        raise InvalidInputError(
            f"{name!r} would be a coarse class that is predicted as itself and a fine class of "
            f"{owner!r}, so the prediction {name!r} would be ambiguous: rename one of them in the "
            f"labels, or forget one with forget(coarse=[{name!r}]) or forget(coarse=[{owner!r}])"
        )

    def numbers_of(self, classes: list[Any], coarse: list[Any]) -> list[int]:
        """Numbers of classes with a column, and of coarse classes with all their fine ones."""
        found = self.columns[self.labels.columns_of(classes)].tolist()
        divided = [self.names[c] for c in found if self.is_divided[c]]
        if divided:
            raise InvalidInputError(
                f"{listed(divided)} have fine classes: pass those, or pass the class as coarse"
            )
        if coarse and self.coarse is not None:
            owners = self.coarse_ids[self.coarse.columns_of(coarse)]
            found += np.flatnonzero(np.isin(self.parents, owners)).tolist()
        return sorted(set(found))

    def without(self, gone: list[int]) -> tuple[LabelTree, list[int]]:
        """The tree without some classes, and the new number of each old class, -1 if removed.

        The fine classes of a removed coarse class must be removed with it. A coarse class that
        loses all its fine ones is predicted as itself again.
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
        without_column = np.setdiff1d(np.flatnonzero(left.is_finest), left.columns)
        return left._with_columns(without_column.tolist()), place.tolist()

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
        """Rebuild from :meth:`to_json`; raises a ``ModelFileError`` if anything is inconsistent."""
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
            raise ModelFileError("the model file is inconsistent: its classes are not a hierarchy")
        if np.setdiff1d(np.flatnonzero(tree.is_finest), columns).size:
            raise ModelFileError("the model file is inconsistent: a class has no column")
        return tree


def mixed_names(names: list[Any], levels: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Names of two levels in one array; of objects if strings and numbers are mixed."""
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
    """Give new fine classes the coarse class of their samples."""
    labelled = coded.fine != UNKNOWN
    is_new = parents[coded.fine[labelled]] == UNKNOWN
    parents = parents.copy()
    parents[coded.fine[labelled][is_new]] = coded.coarse[labelled][is_new]
    return parents


def _check_one_parent(tree: LabelTree, coded: CodedLabels) -> None:
    labelled = coded.fine != UNKNOWN
    fine, coarse = coded.fine[labelled], coded.coarse[labelled]
    wrong = np.flatnonzero(tree.parents[fine] != coarse)
    if len(wrong):
        first = wrong[0]
        name, *names = (
            tree.names[c] for c in (fine[first], tree.parents[fine[first]], coarse[first])
        )
        hint = "" if name != "" else "; if it stands for a missing label, use None"
        raise InvalidInputError(
            f"the fine class {name!r} belongs to two coarse classes, "
            f"{listed(names)}; a fine class has exactly one{hint}"
        )


def _numbers(values: Any, name: str) -> Classes:
    whole = isinstance(values, list) and all(type(v) is int and 0 <= v < 2**31 for v in values)
    if not whole:
        raise ModelFileError(f"the model file is inconsistent: its {name} of classes are damaged")
    return np.array(values, dtype=np.int32)
