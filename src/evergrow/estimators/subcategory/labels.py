"""Labels of samples as callers pass them, read and checked against the known classes.

Labels have a column for each level, from coarse to fine, or they are a flat list of the finest
known class of each sample. They are lists, arrays or data frames, with missing labels in any of the
usual forms. All become a :class:`Column` for each level, whatever the number of levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise, zip_longest
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length

from evergrow.estimators.classifier.learner import translate_errors
from evergrow.estimators.subcategory.label_tree import Classes, Column, LabelTree, Mask
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.formatting import format_count, list_names
from evergrow.foundation.labels import check_label_types

# Types of missing values in pandas, by name: pandas need not be installed.
_MISSING_IN_PANDAS = frozenset({"NAType", "NaTType"})

# What missing labels become when NumPy turns a column into strings.
_STRINGIFIED = frozenset({"nan", "None", "<NA>", "NaT", "-1"})

_MISSING_FINE = -1
# The column of an unknown class.
_NO_COLUMN = -1

_SHAPES = (
    "labels must have two columns, coarse and fine, or one for each of more levels, or one column "
    "and hierarchy={fine: coarse}"
)


def check_labels(
    estimator: Any, X: npt.NDArray[Any], y: Any, hierarchy: Any, tree: LabelTree
) -> list[Column]:
    """Read the labels of a call of ``fit`` or ``partial_fit``, one for each row of ``X``."""
    if y is None:
        raise InvalidInputError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None"
        )
    with translate_errors():
        check_consistent_length(X, y)
    return read_labels(y, hierarchy, tree)


def read_labels(Y: Any, hierarchy: Any, tree: LabelTree) -> list[Column]:
    """Read the labels of each level, and check them against the hierarchy and the known classes.

    The first level has a label for every row, and a row with a label on one level has one on all
    levels above it. A flat list holds classes of the top level as long as nothing is known of finer
    ones. ``hierarchy`` maps classes that are not known yet to the class above them. If there are
    known classes, it must announce new ones of the top level, as ``{name: name}``, unless they are
    among the labels.
    """
    columns, given = label_columns(Y), check_hierarchy(hierarchy)
    by_name = is_flat(Y) and bool(given or tree.hierarchy)
    # With two columns, a fine class may have the name of a coarse one.
    _check_places(given, tree, unique=by_name or len(columns) > 2 or tree.n_levels > 2)
    if by_name:
        levels = _read_names(columns[0], given, tree)
    else:
        levels = _read_levels(columns, {**tree.hierarchy, **given}, hierarchy is not None, tree)
    _check_tops(levels[0], columns[0], given, tree)
    return levels


def join_levels(levels: Sequence[Column], more: Sequence[Column]) -> list[Column]:
    """The rows of both, level by level."""
    none = [
        Column(np.zeros(len(each[0].present), dtype=bool), np.zeros(0, dtype=np.int64))
        for each in (levels, more)
    ]
    joined = []
    for pair in zip_longest(levels, more):
        both = [own or empty for own, empty in zip(pair, none, strict=True)]
        labels = [column.labels for column in both if len(column.labels)]
        present = np.concatenate([column.present for column in both])
        joined.append(Column(present, np.concatenate(labels or [none[0].labels])))
    return joined


def read_refined(
    fine_labels: Any, owners: Classes, ids: npt.NDArray[np.int64], hierarchy: Any, tree: LabelTree
) -> list[Column]:
    """Read the finer labels of stored samples; ``owners`` are the classes given so far."""
    columns, given = label_columns(fine_labels), check_hierarchy(hierarchy)
    column = read_column(columns[0], named=tree.hierarchy.keys() | given.keys(), fine=True)
    _check_fine_labels(column, len(columns), ids)
    _check_places(given, tree, unique=tree.n_levels > 2)
    known = tree.numbers_by_name
    if tree.n_levels == 2:
        # A fine class may have the name of a coarse one.
        known = {name: c for name, c in known.items() if not tree.is_coarse[c]}
    placed: dict[Any, int] = {}
    for name, owner in dict.fromkeys(zip(column.labels.tolist(), owners.tolist(), strict=True)):
        if name not in known and (given.get(name, name) == name or name in placed):
            _place_below(name, owner, given, tree)
            placed[name] = owner
    names, inverse = np.unique(column.labels, return_inverse=True)
    paths = [
        [*tree.path_names(placed[name]), name]
        if name in placed
        else _path(name, given, tree, known)
        for name in names.tolist()
    ]
    levels = _levels_of(paths, inverse)
    if len(levels) > 2:
        for name, owner in placed.items():
            _refuse_to_place(name, owner, tree)
    _check_tops(levels[0], columns[0], given, tree)
    for row, owner in zip(inverse.tolist(), owners.tolist(), strict=True):
        path, own = paths[row], tree.names[tree.tops[owner]]
        if path[0] != own:
            raise InvalidInputError(
                f"the class {path[-1]!r} is below {path[0]!r}, but the sample is of {own!r}: "
                "forget the sample and pass it to partial_fit to move it there"
            )
    return levels


def _check_fine_labels(column: Column, n_columns: int, ids: npt.NDArray[np.int64]) -> None:
    if n_columns != 1:
        raise InvalidInputError(
            f"fine_labels must be a flat list of one fine label for each id, got {n_columns} "
            "columns; the coarse classes are known already"
        )
    if len(column.present) != len(ids):
        raise InvalidInputError(
            f"fine_labels must be a list of {len(ids)} labels, one for each id, "
            f"got {len(column.present)}"
        )
    if not column.present.all():
        raise InvalidInputError(
            f"fine_labels must not be missing, as they are for the samples "
            f"{list_names(ids[~column.present].tolist())}"
        )


def _place_below(name: Any, owner: int, given: dict[Any, Any], tree: LabelTree) -> None:
    """Add to the hierarchy that a new class is below the coarse class of its samples."""
    if tree.n_levels > 2 or not tree.is_coarse[owner]:
        _refuse_to_place(name, owner, tree)
    parent = tree.names[owner]
    if given.setdefault(name, parent) != parent:
        raise InvalidInputError(
            f"the class {name!r} belongs to two parents, {given[name]!r} and {parent!r}; "
            "a class has exactly one: name it in hierarchy={child: parent}"
        )


def _refuse_to_place(name: Any, owner: int, tree: LabelTree) -> NoReturn:
    """Raise a ``ValueError`` for a new class that may be below or next to that of its sample."""
    own, parent = tree.names[owner], tree.names[tree.parents[owner]]
    other = "" if tree.is_coarse[owner] else f" or hierarchy={{{name!r}: {parent!r}}}"
    raise InvalidInputError(
        f"where the new class {name!r} belongs is not clear: a sample of it has the label {own!r} "
        f"so far; name the class above it, such as hierarchy={{{name!r}: {own!r}}}{other}"
    )


def _check_places(given: Mapping[Any, Any], tree: LabelTree, *, unique: bool) -> None:
    """Raise a ``ValueError`` if the hierarchy moves a known class.

    ``unique`` says that a class of the top level cannot have the name of a finer one.
    """
    tops = frozenset(tree.coarse_classes.tolist() if unique else ())
    for name, above in given.items():
        if tree.hierarchy.get(name, above) != above:
            place = f"under {tree.hierarchy[name]!r}"
        elif name in tops and name not in tree.hierarchy and name != above:
            place = "on the top level"
        else:
            continue
        raise InvalidInputError(
            f"hierarchy puts {name!r} under {above!r}, but the model knows it {place}; classes "
            "cannot be moved"
        )


def _check_tops(
    top: Column, column: npt.NDArray[Any], given: Mapping[Any, Any], tree: LabelTree
) -> None:
    """Raise a ``ValueError`` if an update has an unknown class above others, perhaps misspelt."""
    if not len(tree):
        return
    known = {*tree.coarse_classes.tolist(), *column.tolist()}
    known |= {name for name, above in given.items() if name == above}
    unknown = [name for name in np.unique(top.labels).tolist() if name not in known]
    if unknown:
        name = unknown[0]
        below = next((child for child, above in given.items() if above == name), name)
        raise InvalidInputError(
            f"hierarchy puts {below!r} under {name!r}, which the model does not know: correct the "
            f"name, or announce a new class of the top level by {{{name!r}: {name!r}}} in hierarchy"
        )


def _path(
    name: Any, given: Mapping[Any, Any], tree: LabelTree, known: Mapping[Any, int]
) -> list[Any]:
    """The names of the classes from the top level down to a class.

    ``known`` are the numbers of known classes by their name; classes above are the coarsest ones.
    """
    path = [name]
    while path[0] not in known:
        above = given.get(path[0], path[0])
        if above == path[0]:
            return path
        if above in path:
            shown = " -> ".join(repr(each) for each in [*path[::-1], above])
            raise InvalidInputError(
                f"hierarchy has a cycle, {shown}; going up from a class must end on the top level"
            )
        path, known = [above, *path], tree.upper_numbers
    return [*tree.path_names(known[path[0]]), *path[1:]]


def _read_names(
    values: npt.NDArray[Any], given: Mapping[Any, Any], tree: LabelTree
) -> list[Column]:
    """Labels from one column with the finest known class of each sample, on any level."""
    classes = {*tree.names, *given, *given.values()}
    column = read_column(values, named=classes)
    _check_labelled(column.present)
    known = tree.numbers_by_name
    for name in given:
        _path(name, given, tree, known)
    names, inverse = np.unique(column.labels, return_inverse=True)
    unknown = [name for name in names.tolist() if name not in classes]
    if unknown:
        are_not, it = ("is not a class", "it") if len(unknown) == 1 else ("are not classes", "each")
        raise InvalidInputError(
            f"{list_names(unknown)} {are_not} of the hierarchy; name the class above {it} in "
            "hierarchy={child: parent}, a class of the top level as {name: name}"
        )
    tree.check_clear(names.tolist(), "give two columns, coarse and fine, to say which is meant")
    return _levels_of([_path(name, given, tree, known) for name in names.tolist()], inverse)


def _levels_of(paths: Sequence[list[Any]], inverse: npt.NDArray[np.intp]) -> list[Column]:
    """The labels of each level, from the path of each distinct label."""
    levels = []
    for k in range(max(map(len, paths))):
        present = np.array([len(path) > k for path in paths])
        names = np.empty(len(paths), dtype=object)
        names[present] = [path[k] for path in paths if len(path) > k]
        levels.append(_column_of(names[inverse], present[inverse]))
    return levels


def _column_of(names: npt.NDArray[Any], present: Mask) -> Column:
    return Column(present, _plain(names[present]))


def _read_levels(
    columns: list[npt.NDArray[Any]], parents: Mapping[Any, Any], complete: bool, tree: LabelTree
) -> list[Column]:
    """Labels from a column for each level; ``parents`` fills in what is missing above a label.

    ``complete`` says that the hierarchy must name every class.
    """
    tops = frozenset(parents.values()) | frozenset(tree.coarse_classes.tolist())
    levels = [
        read_column(column, named=frozenset(parents) if k else tops, fine=k > 0)
        for k, column in enumerate(columns)
    ]
    for k in range(len(levels) - 1, 0, -1):
        levels[k - 1] = _filled(levels[k - 1], levels[k], parents, k - 1)
    _check_labelled(levels[0].present)
    unnamed: set[Any] = set()
    for above, own in pairwise(levels):
        owners = above.labels[own.present[above.present]]
        pairs = set(zip(own.labels.tolist(), owners.tolist(), strict=True))
        unnamed |= {name for name, _ in pairs} - parents.keys()
        for name, owner in sorted(pairs, key=repr):
            if parents.get(name, owner) != owner:
                raise InvalidInputError(
                    f"the class {name!r} belongs to two parents, {parents[name]!r} by the "
                    f"hierarchy and {owner!r} by the labels; a class has exactly one"
                )
    if complete and unnamed:
        raise InvalidInputError(
            f"hierarchy does not say which parent {list_names(sorted(unnamed))} "
            f"{'belongs' if len(unnamed) == 1 else 'belong'} to; it must name every class that the "
            "model does not know yet"
        )
    return levels


def _filled(above: Column, own: Column, parents: Mapping[Any, Any], level: int) -> Column:
    """The level above, with the classes above labels that have none there."""
    missing = own.present & ~above.present
    if not missing.any():
        return above
    wanted = own.labels[missing[own.present]].tolist()
    # Below the top level, a class cannot be its own subcategory for lack of a label.
    unknown = {n for n in wanted if n not in parents or (level and parents[n] == n)}
    if unknown:
        noun = "class" if len(unknown) == 1 else "classes"
        raise InvalidInputError(
            f"the label on level {level} is missing for samples of the {noun} "
            f"{list_names(sorted(unknown))}, which the model does not know yet: give it, or pass "
            "hierarchy={child: parent}"
        )
    names = np.empty(len(missing), dtype=object)
    names[above.present] = above.labels.tolist()
    names[missing] = [parents[name] for name in wanted]
    return _column_of(names, above.present | missing)


def _check_labelled(present: Mask) -> None:
    """Raise a ``ValueError`` if rows have no label on any level."""
    if not present.all():
        n = int((~present).sum())
        have, them = ("has", "it") if n == 1 else ("have", "them")
        first = "in" if n == 1 else "the first in"
        raise InvalidInputError(
            f"{format_count(n, 'sample')} {have} no label on any level, {first} row "
            f"{int(present.argmin())}; remove {them}"
        )


def true_columns(Y: Any, tree: LabelTree) -> tuple[npt.NDArray[np.intp], Mask]:
    """The right column of each sample, -1 for an unknown class, and whether it is known.

    It is not known if the finest label is a class that has finer ones.
    """
    columns, flat = label_columns(Y), is_flat(Y)
    place = {tree.names[c]: k for k, c in enumerate(tree.columns.tolist())}
    divided = {tree.names[c] for c in np.flatnonzero(tree.is_divided).tolist()}
    divided -= {tree.names[c] for c in np.flatnonzero(tree.is_finest).tolist()}
    truth = np.full(len(columns[0]), _NO_COLUMN, dtype=np.intp)
    is_known, present = np.zeros(len(truth), dtype=bool), np.zeros(len(truth), dtype=bool)
    for k, values in enumerate(columns):
        column = read_column(
            values, named=tree.hierarchy.keys() if k else {*tree.names}, fine=k > 0
        )
        here = divided
        if not flat and k < len(tree.levels):
            _check_kind(column.labels, tree.levels[k].classes)
            own = tree.ids_at(k)
            here = divided | {tree.names[c] for c in own[tree.is_divided[own]].tolist()}
        elif flat:
            _check_kind(column.labels, tree.labels.classes)
        names = column.labels.tolist()
        truth[column.present] = [place.get(name, _NO_COLUMN) for name in names]
        is_known[column.present] = [name not in here for name in names]
        present |= column.present
    _check_labelled(present)
    if not is_known.any():
        raise InvalidInputError(
            "score needs samples whose finest class is known; no fine label is given"
        )
    return truth, is_known


def _check_kind(labels: npt.NDArray[Any], known: npt.NDArray[Any]) -> None:
    kinds = ["strings" if array.dtype.kind == "U" else "numbers" for array in (labels, known)]
    if len(labels) and known.dtype != object and kinds[0] != kinds[1]:
        raise InvalidTypeError(f"labels must be {kinds[1]} like the known classes, got {kinds[0]}")


def label_columns(Y: Any) -> list[npt.NDArray[Any]]:
    """The columns of labels, each of its own type; a flat list is one column.

    >>> [column.tolist() for column in label_columns([["cat", "lynx"], ["dog", None]])]
    [['cat', 'dog'], ['lynx', None]]
    >>> len(label_columns(["lynx", "dog"]))
    1
    """
    if hasattr(Y, "iloc") and hasattr(Y, "columns"):
        columns = [np.asarray(Y.iloc[:, k]) for k in range(Y.shape[1])]
    elif isinstance(Y, (list, tuple)):
        columns = _columns_of_list(Y)
    else:
        array = np.asarray(Y)
        if array.ndim not in (1, 2):
            raise InvalidInputError(f"{_SHAPES}; got {array.ndim} dimensions")
        columns = [array] if array.ndim == 1 else [*array.T]
    if not columns:
        raise InvalidInputError(f"{_SHAPES}; got 0 columns")
    return columns


def is_flat(Y: Any) -> bool:
    """Whether labels are a flat list and not a table with one column."""
    if isinstance(Y, (list, tuple)):
        return not any(isinstance(row, (list, tuple, np.ndarray)) for row in Y)
    return np.asarray(Y).ndim == 1


def _columns_of_list(rows: Sequence[Any]) -> list[npt.NDArray[Any]]:
    # NumPy would convert the labels and missing values of a column to one type.
    nested = [isinstance(row, (list, tuple, np.ndarray)) for row in rows]
    if not any(nested):
        return [_as_objects(rows)]
    widths = {len(row) if is_row else 0 for row, is_row in zip(rows, nested, strict=True)}
    if len(widths) > 1:
        raise InvalidInputError(f"{_SHAPES}; got rows of different lengths, {sorted(widths)}")
    return [_as_objects([row[k] for row in rows]) for k in range(widths.pop())]


def _as_objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = [value.item() if isinstance(value, np.generic) else value for value in values]
    return column


def read_column(
    values: npt.NDArray[Any], *, named: AbstractSet[Any] = frozenset(), fine: bool = False
) -> Column:
    """Labels of one level, without the missing ones.

    ``named`` are known classes, whose names never stand for a missing label. Among fine labels, -1
    is a missing one unless it is in ``named``.

    >>> column = read_column(np.array([3.0, np.nan, -1.0]), fine=True)
    >>> column.present.tolist(), column.labels
    ([True, False, False], array([3]))
    """
    if values.dtype.kind not in "biufUO" and values.dtype.name != "StringDType":
        raise InvalidTypeError(f"labels must be integers or strings, got {values.dtype}")
    if values.dtype.kind == "U":
        _check_not_stringified(values, named)
    missing = np.zeros(len(values), dtype=bool)
    lowest = fine and _MISSING_FINE not in named
    if values.dtype.kind in "if":
        missing = np.isnan(values) | ((values == _MISSING_FINE) & lowest)
    elif values.dtype.kind == "O":
        missing = np.fromiter((_is_missing(value, lowest) for value in values), bool, len(values))
    return Column(~missing, _plain(values[~missing]))


def _is_missing(value: Any, minus_one: bool = False) -> bool:
    if isinstance(value, (int, float, np.integer, np.floating)):
        return bool(value != value or (minus_one and value == _MISSING_FINE))  # noqa: PLR0124
    return value is None or type(value).__name__ in _MISSING_IN_PANDAS


def _check_not_stringified(values: npt.NDArray[Any], named: AbstractSet[Any]) -> None:
    found = sorted((_STRINGIFIED & set(values.tolist())) - named)
    if found:
        raise InvalidInputError(
            f"labels of type {values.dtype} hold {list_names(found)}, which NumPy makes of missing "
            "labels among strings: use a list or an array of dtype=object, with None where a "
            "label is missing; if it is the name of a class, put that into hierarchy"
        )


def _plain(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels of one type: strings or integers; floats, from columns with NaN, become integers."""
    if labels.dtype.kind == "O":
        found = labels.tolist()
        check_label_types(found or [0])
        if found and isinstance(found[0], bytes):
            raise InvalidTypeError(
                "labels must be integers or strings, got bytes: decode them first"
            )
        labels = np.array(found) if found else np.zeros(0, dtype=np.int64)
        if labels.ndim != 1 or labels.dtype.kind == "O":
            raise InvalidInputError(
                f"{_SHAPES}; got labels that are lists, or integers beyond 64 bits"
            )
    elif labels.dtype.name == "StringDType":
        labels = np.array(labels.tolist(), dtype=np.str_)
    if labels.dtype.kind == "f":
        # The second test also finds infinity, which equals its floor.
        odd = labels[(labels != np.floor(labels)) | (np.abs(labels) >= 2.0**53)]
        if len(odd):
            raise InvalidInputError(
                f"Unknown label type: classes must be integers or strings, got {odd[0]}"
            )
        labels = labels.astype(np.int64)
    return labels


def check_hierarchy(hierarchy: Any) -> dict[Any, Any]:
    """A hierarchy as a dictionary of plain names, from fine to coarse; empty for None."""
    if hierarchy is None:
        return {}
    if not isinstance(hierarchy, Mapping):
        raise InvalidTypeError(
            f"hierarchy must map fine classes to coarse ones, got {type(hierarchy).__name__}"
        )
    levels = [_as_objects(list(level)) for level in (hierarchy, hierarchy.values())]
    if any(_is_missing(name) for level in levels for name in level):
        raise InvalidInputError("hierarchy must not contain missing labels")
    fine, coarse = map(_plain, levels)
    return dict(zip(fine.tolist(), coarse.tolist(), strict=True))
