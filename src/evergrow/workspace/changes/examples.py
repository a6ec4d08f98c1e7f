"""Relabels and removes examples, forgets classes, and erases for good.

An erased example is marked in the database first; from then on it is never used again. Its files
are deleted afterwards by :func:`finish_erasure`, on the next opening if a crash comes in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evergrow.foundation.errors import WorkspaceError
from evergrow.foundation.formatting import format_count
from evergrow.workspace.changes.transaction import ChangeTransaction, LabelledExample
from evergrow.workspace.names import normalise_name
from evergrow.workspace.records import Change
from evergrow.workspace.store.queries import class_existed
from evergrow.workspace.store.schema import clear_answers
from evergrow.workspace.store.store import Store

# Examples outside of all classes of which something is still stored.
_ERASABLE = "class_id IS NULL AND (erased = 0 OR image IS NOT NULL)"


def relabel(
    transaction: ChangeTransaction,
    examples: Sequence[int],
    label: str | None,
    fine: str | None,
    clear_fine: bool,
) -> Change:
    """Set the class or fine class of examples, or remove the fine class.

    If all examples have the class already and nothing else was asked for, it is confirmed.
    """
    if label is None and fine is None and not clear_fine:
        raise WorkspaceError("relabel needs a label, a fine name or clear_fine")
    if fine is not None and clear_fine:
        raise WorkspaceError("relabel can set a fine name or remove it, not both")
    name = None if label is None else normalise_name(label)
    fine_name = None if fine is None else normalise_name(fine, "fine")
    classes, labelled = transaction.classes(), transaction.labelled_examples(examples)
    moves: dict[LabelledExample, LabelledExample] = {}
    for one in labelled:
        target = classes.find_or_create(one.label if name is None else name)
        fine_id = None
        if fine_name is not None:
            fine_id = classes.find_or_create(fine_name, target.id).id
        elif target.id == one.class_id and not clear_fine:
            fine_id = one.fine_id
        to = LabelledExample(one.example, target.id, target.name, fine_id)
        if to != one:
            moves[one] = to
    if not moves:
        only_label = label is not None and fine is None and not clear_fine
        if only_label:
            return _confirm(transaction, labelled)
        return transaction.unchanged("relabel", f"{_describe(labelled)} already")
    before, after = next(iter(moves.items()))
    # The first stands for all in the event; the moves record each example.
    body = {**example_ids(moves), "from": before.to_json(), "to": after.to_json()}
    seq = transaction.add_event("relabel", body)
    classes.write(transaction.connection)
    for to in moves.values():
        transaction.move_example(seq, to.example, (to.class_id, to.fine_id))
    transaction.apply_moves(seq)
    fine_part = "" if fine_name is None else f" and {fine_name!r} in it"
    return Change(seq, "relabel", f"{_describe(moves.values())}{fine_part} now", len(moves))


def example_ids(labelled: Iterable[LabelledExample]) -> dict[str, Any]:
    """The examples of an event: ``example`` for one, ``examples`` for several."""
    numbers = [one.example for one in labelled]
    return {"example": numbers[0]} if len(numbers) == 1 else {"examples": numbers}


def _confirm(transaction: ChangeTransaction, labelled: Sequence[LabelledExample]) -> Change:
    body = {
        "examples": [one.example for one in labelled],
        "class": labelled[0].class_id,
        "label": labelled[0].label,
    }
    seq = transaction.add_event("confirm", body)
    return Change(seq, "confirm", f"{_describe(labelled)}, as confirmed", 0)


def _describe(labelled: Iterable[LabelledExample]) -> str:
    some = list(labelled)
    who = f"example {some[0].example} is" if len(some) == 1 else f"{len(some)} examples are"
    labels = list(dict.fromkeys(repr(one.label) for one in some))
    return f"{who} {labels[0] if len(labels) == 1 else f'of {len(labels)} classes'}"


def remove(transaction: ChangeTransaction, examples: Sequence[int]) -> Change:
    """Remove examples."""
    labelled = transaction.labelled_examples(examples)
    seq = transaction.add_event("remove", {**example_ids(labelled), "label": labelled[0].label})
    for one in labelled:
        transaction.move_example(seq, one.example, (None, None))
    transaction.apply_moves(seq)
    summary = f"{format_count(len(labelled), 'example')} removed"
    if len(labelled) == 1:
        summary = f"example {labelled[0].example} of {labelled[0].label!r} is removed"
    return Change(seq, "remove", summary, len(labelled))


def forget(transaction: ChangeTransaction, label: str, erase: bool) -> Change:
    """Remove all examples of a class; erase them, and all removed before, if asked to."""
    name, classes = normalise_name(label), transaction.classes()
    if erase and classes.find(name) is None and class_existed(transaction.connection, name):
        return _erase_forgotten(transaction, name)
    found = classes.require(name)
    seq = transaction.add_event("forget", {"class": found.id, "label": name, "erase": erase})
    n_moved = transaction.move_class(seq, found.id, None)
    transaction.apply_moves(seq)
    summary = f"{name!r} is forgotten with {format_count(n_moved, 'example')}"
    change = Change(seq, "forget", summary, n_moved)
    n_more = _mark_erased(transaction) - n_moved if erase else 0
    if not n_more:
        return change
    more = f"; {format_count(n_more, 'example')} removed earlier erased as well"
    return replace(change, summary=summary + more)


def forget_lost(transaction: ChangeTransaction, numbers: Sequence[int]) -> int:
    """Erase single examples whose embeddings are lost."""
    body = {"class": None, "erase": True, "examples": list(numbers)}
    seq = transaction.add_event("forget", body)
    transaction.connection.executemany(
        "UPDATE example SET erased = 1, row_sha256 = '' WHERE id = ?",
        [(number,) for number in numbers],
    )
    _move_out(transaction, seq, numbers)
    return seq


def erase_examples(transaction: ChangeTransaction, numbers: Sequence[int]) -> int:
    """Erase single examples, and all that were removed before."""
    body = {"class": None, "erase": True, "examples": list(numbers)}
    seq = transaction.add_event("forget", body)
    _move_out(transaction, seq, numbers)
    _mark_erased(transaction)
    return seq


def _move_out(transaction: ChangeTransaction, seq: int, numbers: Sequence[int]) -> None:
    """Move examples out of their classes, those that are in one."""
    transaction.connection.executemany(
        "INSERT INTO move (event, example, from_class, from_fine)"
        " SELECT ?, id, class_id, fine_id FROM example WHERE id = ? AND class_id IS NOT NULL",
        [(seq, number) for number in numbers],
    )
    transaction.apply_moves(seq)


def finish_erasure(store: Store) -> None:
    """Delete the files of erased examples, then clear their hashes in the database.

    An erased example that still has a hash has files left to delete, perhaps since a crash.
    """
    vectors, query = store.vectors, "FROM example WHERE erased = 1 AND row_sha256 != ''"
    if vectors is None or not store.database.writer.execute(f"SELECT 1 {query}").fetchone():
        return
    # Within the transaction no other process can use a row or an image again meanwhile.
    with store.database.transaction() as connection:
        found = connection.execute(f"SELECT id, image {query}").fetchall()
        vectors.erase(np.array([number - 1 for number, _ in found], dtype=np.int64))
        unused = [
            (image,)
            for image in sorted({image for _, image in found if image is not None})
            if not connection.execute(
                "SELECT 1 FROM example WHERE image = ? AND class_id IS NOT NULL", (image,)
            ).fetchone()
        ]
        for (image,) in unused:
            store.images.delete(image)
        connection.execute(
            "UPDATE example SET row_sha256 = '', image = NULL WHERE erased = 1 AND row_sha256 != ''"
        )
        # Other examples of the same image are in no class and cannot be restored any more.
        connection.executemany("UPDATE example SET image = NULL WHERE image = ?", unused)
        connection.executemany("DELETE FROM picture WHERE sha256 = ?", unused)
        clear_answers(connection)
    store.database.drop_log()


def _erase_forgotten(transaction: ChangeTransaction, name: str) -> Change:
    """Erase removed examples, where the class itself was forgotten before."""
    found = transaction.connection.execute(f"SELECT 1 FROM example WHERE {_ERASABLE} LIMIT 1")
    if found.fetchone() is None:
        summary = f"{name!r} was forgotten before, and no removed example is left to erase"
        return transaction.unchanged("forget", summary)
    seq = transaction.add_event("forget", {"class": None, "label": name, "erase": True})
    n_erased = _mark_erased(transaction)
    removed = format_count(n_erased, "removed example")
    return Change(seq, "forget", f"{name!r} was forgotten before; {removed} erased now", n_erased)


def _mark_erased(transaction: ChangeTransaction) -> int:
    """Mark all examples that are in no class as erased; return how many.

    They were stored to undo changes, and no change before an erasure can be undone. Examples move
    between classes before they are removed, so they cannot be told apart by class.
    """
    return transaction.connection.execute(
        # A lost row has no hash any more, but its image is still to be deleted.
        "UPDATE example SET erased = 1, row_sha256 = iif(row_sha256 = '', 'lost', row_sha256)"
        f" WHERE {_ERASABLE}"
    ).rowcount
