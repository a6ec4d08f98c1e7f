"""Removes examples, forgets classes, and erases for good.

An erased example is marked in the database first; from then on it is never used again. Its files
are deleted afterwards by :func:`finish_erasure`, on the next opening if a crash comes in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evergrow.workspace.changes.moves import move_class, move_example
from evergrow.workspace.changes.relabel import example_ids
from evergrow.workspace.changes.transaction import ChangeTransaction, count_of
from evergrow.workspace.names import normalise_name
from evergrow.workspace.records import Change
from evergrow.workspace.store.disk_errors import translate_disk_errors
from evergrow.workspace.store.queries import class_existed
from evergrow.workspace.store.store import Store

# Examples outside of all classes of which something is still stored.
_ERASABLE = "class_id IS NULL AND (erased = 0 OR image IS NOT NULL)"


def remove(transaction: ChangeTransaction, examples: Sequence[int]) -> Change:
    """Remove examples."""
    places = transaction.places(examples)
    seq = transaction.add_event("remove", {**example_ids(places), "label": places[0].label})
    for place in places:
        move_example(transaction.connection, seq, place.example, (None, None))
    transaction.apply_moves(seq)
    summary = f"{count_of(len(places), 'example')} removed"
    if len(places) == 1:
        summary = f"example {places[0].example} of {places[0].label!r} is removed"
    return Change(seq, "remove", summary, len(places))


def forget(transaction: ChangeTransaction, label: str, *, erase: bool) -> Change:
    """Remove all examples of a class; erase them, and all removed before, if asked to."""
    name, classes = normalise_name(label), transaction.classes()
    if erase and classes.find(name) is None and class_existed(transaction.connection, name):
        return _erase_forgotten(transaction, name)
    found = classes.require(name)
    seq = transaction.add_event("forget", {"class": found.id, "label": name, "erase": erase})
    n_moved = move_class(transaction.connection, seq, found.id, None)
    transaction.apply_moves(seq)
    summary = f"{name!r} is forgotten with {count_of(n_moved, 'example')}"
    change = Change(seq, "forget", summary, n_moved)
    n_more = _mark_erased(transaction) - n_moved if erase else 0
    if not n_more:
        return change
    more = f"; {count_of(n_more, 'example')} removed earlier erased as well"
    return replace(change, summary=summary + more)


def forget_lost(transaction: ChangeTransaction, numbers: Sequence[int]) -> int:
    """Erase single examples whose embeddings are lost."""
    body = {"class": None, "erase": True, "examples": list(numbers)}
    seq = transaction.add_event("forget", body)
    for number in numbers:
        transaction.connection.execute(
            "UPDATE example SET erased = 1, row_sha256 = '' WHERE id = ?", (number,)
        )
        transaction.connection.execute(
            "INSERT INTO move (event, example, from_class, from_fine)"
            " SELECT ?, id, class_id, fine_id FROM example WHERE id = ? AND class_id IS NOT NULL",
            (seq, number),
        )
    transaction.apply_moves(seq)
    return seq


def finish_erasure(store: Store) -> None:
    """Delete the files of erased examples, then clear their hashes in the database.

    An erased example that still has a hash has files left to delete, perhaps since a crash.
    """
    vectors, writer = store.vectors, store.database.writer
    found = writer.execute(
        "SELECT id, image FROM example WHERE erased = 1 AND row_sha256 != ''"
    ).fetchall()
    if vectors is None or not found:
        return
    with translate_disk_errors(store.layout.folder):
        vectors.erase(np.array([number - 1 for number, _ in found], dtype=np.int64))
        unused = [
            (image,)
            for image in sorted({image for _, image in found if image is not None})
            if not writer.execute(
                "SELECT 1 FROM example WHERE image = ? AND class_id IS NOT NULL", (image,)
            ).fetchone()
        ]
        for (image,) in unused:
            store.images.delete(image)
        with store.database.transaction() as connection:
            connection.execute(
                "UPDATE example SET row_sha256 = '', image = NULL"
                " WHERE erased = 1 AND row_sha256 != ''"
            )
            # Other examples of the same image are in no class and cannot be restored any more.
            connection.executemany("UPDATE example SET image = NULL WHERE image = ?", unused)
            connection.executemany("DELETE FROM picture WHERE sha256 = ?", unused)


def _erase_forgotten(transaction: ChangeTransaction, name: str) -> Change:
    """Erase removed examples, where the class itself was forgotten before."""
    found = transaction.connection.execute(f"SELECT 1 FROM example WHERE {_ERASABLE} LIMIT 1")
    if found.fetchone() is None:
        summary = f"{name!r} was forgotten before, and no removed example is left to erase"
        return transaction.unchanged("forget", summary)
    seq = transaction.add_event("forget", {"class": None, "label": name, "erase": True})
    n_erased = _mark_erased(transaction)
    removed = count_of(n_erased, "removed example")
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
