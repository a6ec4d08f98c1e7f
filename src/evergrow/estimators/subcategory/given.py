"""What a call says of its samples: a coarse class of each, and a fine one of some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.subcategory.label_columns import (
    Column,
    check_hierarchy,
    is_flat,
    label_columns,
    listed,
    read_column,
)

if TYPE_CHECKING:
    from evergrow.estimators.subcategory.hierarchy import LabelTree

__all__ = ["GivenLabels", "read_labels"]


@dataclass(frozen=True, eq=False)
class GivenLabels:
    """Names of the coarse class of every row, and of the fine class of rows that have one."""

    coarse: npt.NDArray[Any]
    fine: Column

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.coarse)


def read_labels(Y: Any, hierarchy: Any, tree: LabelTree) -> GivenLabels:
    """Labels of a call, checked against the hierarchy it gives and against the known classes.

    Parameters
    ----------
    Y : array-like of shape (n_samples, 2), (n_samples, 1) or (n_samples,)
        Coarse and fine labels; coarse ones alone; or, flat, the finest label that is known.
    hierarchy : mapping or None
        Coarse class by fine class, for classes that are not known yet.
    tree : LabelTree
        The known classes.
    """
    columns = label_columns(Y)
    parents = _joined(check_hierarchy(hierarchy), tree)
    if len(columns) == 2:
        return _two_levels(columns, parents, must_be_named=hierarchy is not None, tree=tree)
    if is_flat(Y):
        return _mixed_levels(columns[0], parents, tree)
    coarse = read_column(columns[0], named=_known_coarse(parents, tree))
    _check_whole(coarse, "a coarse label")
    return GivenLabels(coarse.labels, Column.empty(len(coarse.labels)))


def _joined(hierarchy: dict[Any, Any], tree: LabelTree) -> dict[Any, Any]:
    known = tree.hierarchy
    for fine, coarse in hierarchy.items():
        if fine in known and known[fine] != coarse:
            raise ValueError(
                f"hierarchy puts {fine!r} under {coarse!r}, but the model knows it as a fine "
                f"class of {known[fine]!r}; a fine class has one coarse class"
            )
    return {**known, **hierarchy}


def _known_coarse(parents: Mapping[Any, Any], tree: LabelTree) -> frozenset[Any]:
    return frozenset(parents.values()) | frozenset(tree.coarse_names)


def _two_levels(
    columns: list[npt.NDArray[Any]],
    parents: dict[Any, Any],
    *,
    must_be_named: bool,
    tree: LabelTree,
) -> GivenLabels:
    coarse = read_column(columns[0], named=_known_coarse(parents, tree))
    fine = read_column(columns[1], named=frozenset(parents), fine=True)
    if must_be_named:
        _check_named(fine, parents)
    labels = GivenLabels(_filled(coarse, fine, parents), fine)
    _check_agreement(labels, parents)
    return labels


def _check_agreement(labels: GivenLabels, parents: Mapping[Any, Any]) -> None:
    names, fine = np.unique(labels.fine.labels, return_inverse=True)
    owners, given = np.unique(labels.coarse[labels.fine.present], return_inverse=True)
    for pair in np.unique(fine * len(owners) + given).tolist():
        name, coarse = names[pair // len(owners)].item(), owners[pair % len(owners)].item()
        if parents.get(name, coarse) != coarse:
            raise ValueError(
                f"the fine class {name!r} belongs to two coarse classes, {parents[name]!r} by the "
                f"hierarchy and {coarse!r} by the labels; a fine class has exactly one"
            )


def _check_named(fine: Column, parents: Mapping[Any, Any]) -> None:
    unknown = [name for name in np.unique(fine.labels).tolist() if name not in parents]
    if unknown:
        raise ValueError(
            f"hierarchy does not say which coarse class {listed(unknown)} belong to; it must name "
            "every fine class that the model does not know yet"
        )


def _filled(coarse: Column, fine: Column, parents: Mapping[Any, Any]) -> npt.NDArray[Any]:
    """Coarse labels, of the fine ones where they are missing themselves."""
    if coarse.present.all():
        return coarse.labels
    bare = ~coarse.present & ~fine.present
    if bare.any():
        raise ValueError(
            f"{bare.sum()} samples have neither a coarse nor a fine label, the first in row "
            f"{int(bare.argmax())}; leave them out"
        )
    own = np.empty(len(coarse.present), dtype=object)
    own[fine.present] = fine.labels.tolist()
    wanted = own[~coarse.present].tolist()
    unknown = sorted({name for name in wanted if name not in parents})
    if unknown:
        raise ValueError(
            f"the coarse label is missing for samples of the fine classes {listed(unknown)}, which "
            "the model does not know yet: give it, or hierarchy={fine: coarse}"
        )
    names = np.empty(len(coarse.present), dtype=object)
    names[coarse.present] = coarse.labels.tolist()
    names[~coarse.present] = [parents[name] for name in wanted]
    return read_column(names).labels


def _mixed_levels(
    values: npt.NDArray[Any], parents: dict[Any, Any], tree: LabelTree
) -> GivenLabels:
    """One column whose entries are fine classes, or coarse ones where the fine is not known."""
    coarse_names = _known_coarse(parents, tree)
    column = read_column(values, named=coarse_names | frozenset(parents))
    if not coarse_names:
        raise ValueError(
            "one column of labels does not say which fine class belongs to which coarse one: give "
            "two columns, coarse and fine, or hierarchy={fine: coarse}; coarse labels alone come "
            "as one column of shape (n_samples, 1)"
        )
    _check_whole(column, "a fine or a coarse label")
    names, inverse = np.unique(column.labels, return_inverse=True)
    known = names.tolist()
    _check_one_meaning(known, parents, coarse_names)
    is_fine = np.array([name in parents for name in known])[inverse]
    owner = np.array([parents.get(name, name) for name in known])
    return GivenLabels(owner[inverse], Column(is_fine, column.labels[is_fine]))


def _check_one_meaning(
    names: list[Any], parents: Mapping[Any, Any], coarse_names: frozenset[Any]
) -> None:
    unknown = [name for name in names if name not in parents and name not in coarse_names]
    if unknown:
        raise ValueError(
            f"{listed(unknown)} are neither fine nor coarse classes of the hierarchy; name them in "
            "hierarchy={fine: coarse}, a coarse class without fine ones as {coarse: coarse}"
        )
    n_children = Counter(parents.values())
    both = [
        name
        for name in names
        if name in parents
        and name in coarse_names
        and not (parents[name] == name and n_children[name] == 1)
    ]
    if both:
        raise ValueError(
            f"{listed(both)} are names of fine and of coarse classes; give two columns, coarse and "
            "fine, to say which is meant"
        )


def _check_whole(column: Column, what: str) -> None:
    if not column.present.all():
        n_missing = int((~column.present).sum())
        first = int(column.present.argmin())
        raise ValueError(
            f"every sample needs {what}: {n_missing} have none, the first in row {first}"
        )
