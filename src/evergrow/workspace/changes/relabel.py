"""Corrects the class or fine name of examples, or confirms it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.changes.moves import move_example
from evergrow.workspace.changes.transaction import ChangeTransaction, Place
from evergrow.workspace.names import normalise_name
from evergrow.workspace.records import Change


def relabel(
    transaction: ChangeTransaction,
    examples: Sequence[int],
    *,
    label: str | None,
    fine: str | None,
    clear_fine: bool,
) -> Change:
    """Set the class or fine name of examples, or remove the fine name.

    If all examples have the class already and nothing else was asked for, it is confirmed.
    """
    if label is None and fine is None and not clear_fine:
        raise WorkspaceError("relabel needs a label, a fine name, or both")
    if fine is not None and clear_fine:
        raise WorkspaceError("relabel can set a fine name or remove it, not both")
    name = None if label is None else normalise_name(label)
    fine_name = None if fine is None else normalise_name(fine, "fine")
    classes, places = transaction.classes(), transaction.places(examples)
    moves: dict[Place, Place] = {}
    for place in places:
        target = classes.find_or_create(place.label if name is None else name)
        fine_id = None
        if fine_name is not None:
            fine_id = classes.find_or_create(fine_name, target.id).id
        elif target.id == place.class_id and not clear_fine:
            fine_id = place.fine_id
        to = Place(place.example, target.id, target.name, fine_id)
        if to != place:
            moves[place] = to
    if not moves:
        only_label = label is not None and fine is None and not clear_fine
        if only_label:
            return _confirm(transaction, places)
        return transaction.unchanged("relabel", f"{_describe(places)} already")
    before, after = next(iter(moves.items()))
    # The first stands for all in the event; the moves record each example.
    body = {**example_ids(moves), "from": before.to_json(), "to": after.to_json()}
    seq = transaction.add_event("relabel", body)
    classes.write(transaction.connection)
    for to in moves.values():
        move_example(transaction.connection, seq, to.example, (to.class_id, to.fine_id))
    transaction.apply_moves(seq)
    fine_part = "" if fine_name is None else f" and {fine_name!r} in it"
    return Change(seq, "relabel", f"{_describe(moves.values())}{fine_part} now", len(moves))


def example_ids(places: Iterable[Place]) -> dict[str, Any]:
    """The examples of an event: ``example`` for one, ``examples`` for several."""
    numbers = [place.example for place in places]
    return {"example": numbers[0]} if len(numbers) == 1 else {"examples": numbers}


def _confirm(transaction: ChangeTransaction, places: Sequence[Place]) -> Change:
    body = {
        "examples": [place.example for place in places],
        "class": places[0].class_id,
        "label": places[0].label,
    }
    seq = transaction.add_event("confirm", body)
    return Change(seq, "confirm", f"{_describe(places)}, as confirmed", 0)


def _describe(places: Iterable[Place]) -> str:
    some = list(places)
    who = f"example {some[0].example} is" if len(some) == 1 else f"{len(some)} examples are"
    labels = list(dict.fromkeys(repr(place.label) for place in some))
    return f"{who} {labels[0] if len(labels) == 1 else f'of {len(labels)} classes'}"
