"""Labels of samples at all levels, read and checked against the known classes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length

from evergrow.estimators.classifier.learner import translate_errors
from evergrow.estimators.subcategory.labels.columns import (
    Column,
    by_number,
    check_hierarchy,
    is_flat,
    label_columns,
    listed,
    read_column,
)
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError

if TYPE_CHECKING:
    from evergrow.estimators.subcategory.labels.hierarchy import LabelTree


@dataclass(frozen=True, eq=False)
class SampleLabels:
    """Names of the coarse class of every row, and of finer classes of some rows.

    ``deeper`` are the levels below the fine one. A row with a class on one level has one on all
    levels above it.
    """

    coarse: npt.NDArray[Any]
    fine: Column
    deeper: tuple[Column, ...] = ()

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.coarse)

    def joined(self, other: SampleLabels) -> SampleLabels:
        """Return the rows of both."""
        levels = itertools.zip_longest((self.fine, *self.deeper), (other.fine, *other.deeper))
        fine, *deeper = (
            (own or Column.empty(len(self))).joined(more or Column.empty(len(other)))
            for own, more in levels
        )
        return SampleLabels(np.concatenate([self.coarse, other.coarse]), fine, tuple(deeper))


def check_labels(
    estimator: Any, X: npt.NDArray[Any], y: Any, hierarchy: Any, tree: LabelTree
) -> SampleLabels:
    """Read the labels of a call of ``fit`` or ``partial_fit``, one for each row of ``X``."""
    if y is None:
        raise InvalidInputError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None"
        )
    with translate_errors():
        check_consistent_length(X, y)
    return read_labels(y, hierarchy, tree)


def read_labels(Y: Any, hierarchy: Any, tree: LabelTree) -> SampleLabels:
    """Read training labels and check them against the hierarchy and the known classes.

    Labels have a column for each level, coarse and fine; or one column of coarse ones; or they are
    a flat list of the finest known ones, which are coarse ones as long as nothing is known of finer
    ones. ``hierarchy`` maps classes that are not known yet to the class above them. If there are
    known classes, it must announce new ones of the top level, as ``{name: name}``, unless they are
    among the labels.
    """
    columns = label_columns(Y)
    given = check_hierarchy(hierarchy)
    parents = _join_hierarchies(given, tree)
    if len(columns) > 2:
        labels = _many_levels(columns, parents, tree)
    elif len(columns) == 2:
        labels = _two_levels(columns, parents, must_be_named=hierarchy is not None, tree=tree)
    elif is_flat(Y) and parents:
        if tree.deeper or _is_deep(given, tree):
            labels = _mixed_depths(columns[0], parents, tree)
        else:
            labels = _mixed_levels(columns[0], _without_new_tops(parents, tree), tree)
    else:
        coarse = read_column(columns[0], named=_known_coarse(parents, tree))
        _check_complete(coarse, "a coarse label")
        labels = SampleLabels(coarse.labels, Column.empty(len(coarse.labels)))
    _check_tops(labels, columns[0], given, tree)
    return labels


def _without_new_tops(parents: dict[Any, Any], tree: LabelTree) -> dict[Any, Any]:
    """The hierarchy of an update without new classes of the top level that have finer ones.

    They are announced as ``{name: name}``, which else means a class that is its own subcategory.
    """
    if tree.coarse is None:
        return parents
    known, n_children = frozenset(tree.names), Counter(parents.values())
    return {
        name: above
        for name, above in parents.items()
        if name != above or name in known or n_children[name] == 1
    }


def _check_tops(
    labels: SampleLabels, column: npt.NDArray[Any], given: Mapping[Any, Any], tree: LabelTree
) -> None:
    """Raise a ``ValueError`` if an update has an unknown class above others, perhaps misspelt."""
    if tree.coarse is None:
        return
    known = {*tree.coarse_classes.tolist(), *column.tolist()}
    known |= {name for name, above in given.items() if name == above}
    unknown = [name for name in np.unique(labels.coarse).tolist() if name not in known]
    if unknown:
        name = unknown[0]
        below = next((child for child, above in given.items() if above == name), name)
        raise InvalidInputError(
            f"hierarchy puts {below!r} under {name!r}, which the model does not know: correct the "
            f"name, or announce a new class of the top level by {{{name!r}: {name!r}}} in hierarchy"
        )


def _is_deep(given: Mapping[Any, Any], tree: LabelTree) -> bool:
    """Whether a hierarchy puts a class below one that is not on the top level."""
    top = frozenset(tree.coarse_classes.tolist())
    return any(
        above != name
        and above not in top
        and (given.get(above, above) != above or above in tree.hierarchy)
        for name, above in given.items()
    )


def _path(name: Any, parents: Mapping[Any, Any]) -> list[Any]:
    """The names of the classes from the top level down to a class."""
    path = [name]
    while (above := parents.get(path[-1], path[-1])) != path[-1]:
        path.append(above)
        if above in path[:-1]:
            shown = " -> ".join(repr(each) for each in path)
            raise InvalidInputError(
                f"hierarchy has a cycle, {shown}; going up from a class must end on the top level"
            )
    return path[::-1]


def _mixed_depths(
    values: npt.NDArray[Any], parents: dict[Any, Any], tree: LabelTree
) -> SampleLabels:
    """Labels from one column with the finest known class of each sample, on any level."""
    coarse_names = _known_coarse(parents, tree)
    column = read_column(values, named=coarse_names | frozenset(parents))
    _check_complete(column, "a label on some level")
    for name in parents:
        _path(name, parents)
    names, inverse = np.unique(column.labels, return_inverse=True)
    unknown = [name for name in names.tolist() if name not in parents and name not in coarse_names]
    if unknown:
        raise InvalidInputError(
            f"{listed(unknown)} {by_number(len(unknown), 'is not a class', 'are not classes')} of "
            f"the hierarchy; name the class above {by_number(len(unknown), 'it', 'each')} in "
            "hierarchy={child: parent}, a class of the top level as {name: name}"
        )
    paths = [_path(name, parents) for name in names.tolist()]
    levels = []
    for k in range(max(2, *map(len, paths))):
        present = np.array([len(path) > k for path in paths])
        own = np.empty(len(paths), dtype=object)
        own[present] = [path[k] for path in paths if len(path) > k]
        rows = present[inverse]
        levels.append(Column(rows, read_column(own[inverse][rows]).labels))
    return SampleLabels(levels[0].labels, levels[1], tuple(levels[2:]))


def _many_levels(
    columns: list[npt.NDArray[Any]], parents: dict[Any, Any], tree: LabelTree
) -> SampleLabels:
    """Labels from three or more columns; the hierarchy fills in what is missing above a label."""
    for name in parents if tree.deeper or not tree.hierarchy else ():
        _path(name, parents)
    read = [read_column(columns[0], named=_known_coarse(parents, tree))]
    read += [read_column(column, named=frozenset(parents), fine=True) for column in columns[1:]]
    n = len(read[0].present)
    names = [np.empty(n, dtype=object) for _ in read]
    for own, column in zip(names, read, strict=True):
        own[column.present] = column.labels.tolist()
    present = [column.present.copy() for column in read]
    for k in range(len(read) - 1, 0, -1):
        missing = present[k] & ~present[k - 1]
        wanted = names[k][missing].tolist()
        unknown = sorted({name for name in wanted if parents.get(name, name) == name})
        if unknown:
            raise InvalidInputError(
                f"the label on level {k - 1} is missing for samples of "
                f"{listed(unknown)}, which the model does not know yet: give it, or pass "
                "hierarchy={child: parent}"
            )
        names[k - 1][missing] = [parents[name] for name in wanted]
        present[k - 1] |= missing
    if not present[0].all():
        raise InvalidInputError(
            f"{_some_have(~present[0], 'no label on any level')}; remove "
            f"{by_number((~present[0]).sum(), 'it', 'them')}"
        )
    filled = [
        column
        if np.array_equal(given, column.present)
        else Column(given, read_column(own[given]).labels)
        for column, given, own in zip(read, present, names, strict=True)
    ]
    _check_parents(filled, parents)
    while len(filled) > 2 and not filled[-1].present.any():
        filled.pop()
    return SampleLabels(filled[0].labels, filled[1], tuple(filled[2:]))


def _check_parents(levels: list[Column], parents: Mapping[Any, Any]) -> None:
    """Raise a ``ValueError`` if columns contradict the hierarchy."""
    for above, own in itertools.pairwise(levels):
        given = np.empty(len(above.present), dtype=object)
        given[above.present] = above.labels.tolist()
        pairs = set(zip(own.labels.tolist(), given[own.present].tolist(), strict=True))
        for name, owner in sorted(pairs, key=repr):
            if parents.get(name, owner) != owner:
                raise InvalidInputError(
                    f"the class {name!r} belongs to two parents, {parents[name]!r} by the "
                    f"hierarchy and {owner!r} by the labels; a class has exactly one"
                )


def _join_hierarchies(hierarchy: dict[Any, Any], tree: LabelTree) -> dict[Any, Any]:
    known = tree.hierarchy
    deep = tree.deeper or _is_deep(hierarchy, tree)
    # With two levels, a fine class may have the name of a coarse one.
    top = frozenset(tree.coarse_classes.tolist() if deep else ())
    for fine, coarse in hierarchy.items():
        if fine in known and known[fine] != coarse:
            place = f"{'under' if deep else 'as a fine class of'} {known[fine]!r}"
        elif fine in top and fine not in known and fine != coarse:
            place = "on the top level"
        else:
            continue
        rule = "classes cannot be moved" if deep else "a fine class has exactly one coarse class"
        raise InvalidInputError(
            f"hierarchy puts {fine!r} under {coarse!r}, but the model knows it {place}; {rule}"
        )
    return {**known, **hierarchy}


def _known_coarse(parents: Mapping[Any, Any], tree: LabelTree) -> frozenset[Any]:
    return frozenset(parents.values()) | frozenset(tree.coarse_classes.tolist())


def _two_levels(
    columns: list[npt.NDArray[Any]],
    parents: dict[Any, Any],
    *,
    must_be_named: bool,
    tree: LabelTree,
) -> SampleLabels:
    coarse = read_column(columns[0], named=_known_coarse(parents, tree))
    fine = read_column(columns[1], named=frozenset(parents), fine=True)
    words = _DEEP if tree.deeper else _TWO_LEVELS
    if must_be_named:
        _check_named(fine, parents, words)
    labels = SampleLabels(_fill_coarse(coarse, fine, parents, words), fine)
    _check_agreement(labels, parents, words)
    return labels


@dataclass(frozen=True)
class _Words:
    """What the classes of two columns are called in messages."""

    own: str
    owns: str
    above: str
    aboves: str
    label: str
    pair: str


_TWO_LEVELS = _Words(
    "fine class", "fine classes", "coarse class", "coarse classes", "coarse label", "{fine: coarse}"
)
_DEEP = _Words("class", "classes", "parent", "parents", "label on level 0", "{child: parent}")


def _check_agreement(labels: SampleLabels, parents: Mapping[Any, Any], words: _Words) -> None:
    names, fine = np.unique(labels.fine.labels, return_inverse=True)
    owners, given = np.unique(labels.coarse[labels.fine.present], return_inverse=True)
    for pair in np.unique(fine * len(owners) + given).tolist():
        name, coarse = names[pair // len(owners)].item(), owners[pair % len(owners)].item()
        if parents.get(name, coarse) != coarse:
            raise InvalidInputError(
                f"the {words.own} {name!r} belongs to two {words.aboves}, {parents[name]!r} by the "
                f"hierarchy and {coarse!r} by the labels; a {words.own} has exactly one"
            )


def _check_named(fine: Column, parents: Mapping[Any, Any], words: _Words) -> None:
    unknown = [name for name in np.unique(fine.labels).tolist() if name not in parents]
    if unknown:
        raise InvalidInputError(
            f"hierarchy does not say which {words.above} {listed(unknown)} "
            f"{by_number(len(unknown), 'belongs', 'belong')} to; it must name every {words.own} "
            "that the model does not know yet"
        )


def _fill_coarse(
    coarse: Column, fine: Column, parents: Mapping[Any, Any], words: _Words
) -> npt.NDArray[Any]:
    """Coarse labels, taken from the hierarchy where they are missing."""
    if coarse.present.all():
        return coarse.labels
    bare = ~coarse.present & ~fine.present
    if bare.any():
        raise InvalidInputError(
            f"{_some_have(bare, 'neither a coarse nor a fine label')}; remove "
            f"{by_number(bare.sum(), 'it', 'them')}"
        )
    own = np.empty(len(coarse.present), dtype=object)
    own[fine.present] = fine.labels.tolist()
    wanted = own[~coarse.present].tolist()
    unknown = sorted({name for name in wanted if name not in parents})
    if unknown:
        raise InvalidInputError(
            f"the {words.label} is missing for samples of the "
            f"{by_number(len(unknown), words.own, words.owns)} {listed(unknown)}, which the model "
            f"does not know yet: give it, or pass hierarchy={words.pair}"
        )
    names = np.empty(len(coarse.present), dtype=object)
    names[coarse.present] = coarse.labels.tolist()
    names[~coarse.present] = [parents[name] for name in wanted]
    return read_column(names).labels


def _mixed_levels(
    values: npt.NDArray[Any], parents: dict[Any, Any], tree: LabelTree
) -> SampleLabels:
    """Labels from one column of fine classes, and of coarse ones where the fine is not known."""
    coarse_names = _known_coarse(parents, tree)
    column = read_column(values, named=coarse_names | frozenset(parents))
    _check_complete(column, "a fine or a coarse label")
    names, inverse = np.unique(column.labels, return_inverse=True)
    known = names.tolist()
    _check_one_meaning(known, parents, coarse_names)
    is_fine = np.array([name in parents for name in known])[inverse]
    owner = np.array([parents.get(name, name) for name in known])
    return SampleLabels(owner[inverse], Column(is_fine, column.labels[is_fine]))


def _check_one_meaning(
    names: list[Any], parents: Mapping[Any, Any], coarse_names: frozenset[Any]
) -> None:
    unknown = [name for name in names if name not in parents and name not in coarse_names]
    if unknown:
        raise InvalidInputError(
            f"{listed(unknown)} {by_number(len(unknown), 'is', 'are')} not in the hierarchy, "
            f"neither as fine nor as coarse; name {by_number(len(unknown), 'it', 'them')} in "
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
        are_names = by_number(
            len(both),
            "is the name of a fine and of a coarse class",
            "are names of fine and of coarse classes",
        )
        raise InvalidInputError(
            f"{listed(both)} {are_names}; give two columns, coarse and fine, to say which is meant"
        )


def _check_complete(column: Column, what: str) -> None:
    if not column.present.all():
        raise InvalidInputError(f"every sample needs {what}: {_some_have(~column.present, 'none')}")


def _some_have(rows: npt.NDArray[np.bool_], what: str) -> str:
    """How many samples have what is wrong, and in which row."""
    n, first = int(rows.sum()), int(rows.argmax())
    if n == 1:
        return f"1 sample has {what}, in row {first}"
    return f"{n} samples have {what}, the first in row {first}"


# The column of an unknown class.
_NO_COLUMN = -1


def true_columns(Y: Any, tree: LabelTree) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """The right column of each sample, -1 for an unknown class, and whether it is known.

    It is not known if the fine label is missing and the coarse class has fine classes.
    """
    columns = label_columns(Y)
    if tree.deeper or len(columns) > 2:
        return _deep_columns(columns, tree)
    place = {tree.names[c]: k for k, c in enumerate(tree.columns.tolist())}
    divided = {tree.names[c] for c in np.flatnonzero(tree.is_divided).tolist()}
    if is_flat(Y):
        labels = read_column(columns[0], named=frozenset(place) | divided)
        if not labels.present.all():
            raise InvalidInputError("a flat list of labels must not contain missing labels")
        truth = _columns_of(labels.labels, place, tree.labels.classes)
        finest = [name not in divided or name in tree.hierarchy for name in labels.labels.tolist()]
        return truth, _check_any(np.array(finest, dtype=bool))
    coarse = read_column(columns[0], named=frozenset(tree.coarse_classes.tolist()))
    truth = np.full(len(coarse.present), _NO_COLUMN, dtype=np.intp)
    is_known = np.zeros(len(truth), dtype=bool)
    is_known[coarse.present] = [name not in divided for name in coarse.labels.tolist()]
    truth[coarse.present] = _columns_of(coarse.labels, place, tree.coarse_classes)
    if len(columns) == 2:
        fine = read_column(columns[1], named=frozenset(tree.hierarchy), fine=True)
        known = fine.labels if tree.fine is None else tree.fine.classes
        truth[fine.present] = _columns_of(fine.labels, place, known)
        is_known |= fine.present
    return truth, _check_any(is_known)


def _deep_columns(
    columns: list[npt.NDArray[Any]], tree: LabelTree
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """The same for a tree of three or more levels, from the finest label of each row."""
    named = frozenset(tree.names)
    finest = np.empty(len(columns[0]), dtype=object)
    is_known = np.zeros(len(finest), dtype=bool)
    for k, values in enumerate(columns):
        column = read_column(values, named=named, fine=k > 0)
        finest[column.present] = column.labels.tolist()
        is_known |= column.present
    if not is_known.all():
        raise InvalidInputError(
            f"every sample needs a label on some level, the one in row {int(is_known.argmin())} "
            "has none"
        )
    place = {tree.names[c]: k for k, c in enumerate(tree.columns.tolist())}
    divided = {name for name, c in tree.numbers_by_name.items() if tree.is_divided[c]}
    truth = [_NO_COLUMN if name in divided else place.get(name, _NO_COLUMN) for name in finest]
    is_finest = np.array([name not in divided for name in finest], dtype=bool)
    return np.array(truth, dtype=np.intp), _check_any(is_finest)


def _check_any(is_known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    if not is_known.any():
        raise InvalidInputError(
            "score needs samples whose finest class is known; no fine label is given"
        )
    return is_known


def _columns_of(
    labels: npt.NDArray[Any], place: dict[Any, int], known: npt.NDArray[Any]
) -> npt.NDArray[np.intp]:
    kinds = ["strings" if array.dtype.kind == "U" else "numbers" for array in (labels, known)]
    if len(labels) and known.dtype != object and kinds[0] != kinds[1]:
        raise InvalidTypeError(f"labels must be {kinds[1]} like the known classes, got {kinds[0]}")
    return np.array([place.get(name, _NO_COLUMN) for name in labels.tolist()], dtype=np.intp)
