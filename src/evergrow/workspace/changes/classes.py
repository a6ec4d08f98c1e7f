"""Renames, merges and splits classes."""

from __future__ import annotations

from evergrow.foundation.formatting import format_count
from evergrow.workspace.changes.transaction import ChangeTransaction
from evergrow.workspace.names import normalise_name
from evergrow.workspace.records import Change, ConflictError
from evergrow.workspace.store.queries import COARSE

# A class can be split once this many fine classes have this many examples each.
_LEAST_FINE_CLASSES = 2
_LEAST_EXAMPLES_EACH = 2


def rename(transaction: ChangeTransaction, label: str, to: str, within: str | None) -> Change:
    """Rename a class, or a fine class of the class that ``within`` names."""
    classes = transaction.classes()
    parent = COARSE if within is None else classes.require(normalise_name(within)).id
    renamed = classes.require(normalise_name(label), parent)
    name = normalise_name(to, "the new name")
    if name == renamed.name:
        return transaction.unchanged("rename", f"{name!r} has that name already")
    if classes.find(name, parent) is not None:
        raise ConflictError(
            f"there is a class {name!r} already: merge {renamed.name!r} into it instead"
        )
    body = {"class": renamed.id, "from": renamed.name, "to": name}
    seq = transaction.add_event("rename", body)
    transaction.set_name(seq, renamed.id, name)
    return Change(seq, "rename", f"{renamed.name!r} is {name!r} now", renamed.n_examples)


def merge(transaction: ChangeTransaction, source: str, into: str) -> Change:
    """Move all examples of one class to another, with their fine classes."""
    classes = transaction.classes()
    merged = classes.require(normalise_name(source))
    target = classes.require(normalise_name(into))
    if merged.id == target.id:
        raise ConflictError(f"{merged.name!r} cannot be merged into itself")
    fine = transaction.connection.execute(
        "SELECT id, name FROM class WHERE parent = ? AND n_examples > 0 ORDER BY id", (merged.id,)
    ).fetchall()
    mapping = {number: classes.find_or_create(name, target.id).id for number, name in fine}
    body = {
        "class": merged.id,
        "label": merged.name,
        "into": target.id,
        "into_label": target.name,
    }
    seq = transaction.add_event("merge", body)
    classes.write(transaction.connection)
    n_moved = transaction.move_class(seq, merged.id, target.id, mapping)
    transaction.apply_moves(seq)
    summary = f"{format_count(n_moved, 'example')} of {merged.name!r} moved to {target.name!r}"
    return Change(seq, "merge", summary, n_moved)


def split(transaction: ChangeTransaction, label: str) -> Change:
    """Start to distinguish the fine classes within a class."""
    found = transaction.classes().require(normalise_name(label))
    if found.split:
        raise ConflictError(f"{found.name!r} is split already")
    fine = transaction.connection.execute(
        "SELECT name, n_examples FROM class WHERE parent = ? AND n_examples > 0 ORDER BY id",
        (found.id,),
    ).fetchall()
    if sum(number >= _LEAST_EXAMPLES_EACH for _, number in fine) < _LEAST_FINE_CLASSES:
        there = ", ".join(f"{name!r} with {number}" for name, number in fine) or "none"
        raise ConflictError(
            f"to split {found.name!r}, at least {_LEAST_FINE_CLASSES} fine classes need "
            f"{_LEAST_EXAMPLES_EACH} examples each; there are: {there}"
        )
    body = {"class": found.id, "label": found.name, "split": True}
    seq = transaction.add_event("split", body)
    transaction.set_split(found.id, True)
    fine_classes = format_count(len(fine), "fine class")
    return Change(seq, "split", f"{found.name!r} is split into {fine_classes}", found.n_examples)


def unsplit(transaction: ChangeTransaction, label: str) -> Change:
    """Stop distinguishing the fine classes within a class; given fine classes stay."""
    found = transaction.classes().require(normalise_name(label))
    if not found.split:
        raise ConflictError(f"{found.name!r} is not split")
    body = {"class": found.id, "label": found.name, "split": False}
    seq = transaction.add_event("unsplit", body)
    transaction.set_split(found.id, False)
    return Change(seq, "unsplit", f"{found.name!r} is one class again", found.n_examples)
