"""Models saved and loaded in tests, and model files that were changed on purpose."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import ModelFileError
from evergrow.storage.models.format import read_model, write_model

# Changes the header and the arrays of a file in place.
Change = Callable[[dict[str, Any], dict[str, Any]], Any]


def reload(model: Any, folder: Path, **options: Any) -> Any:
    """The model as it comes back from a file."""
    path = folder / "model.evergrow"
    if options:
        model.save(path, **options)
    else:
        evergrow.save(model, path)
    return evergrow.load(path)


def put(name: str, array: Any) -> Change:
    """Replace an array; a function gets the old one."""
    return lambda _, tensors: tensors.update(
        {name: array(tensors.get(name)) if callable(array) else array}
    )


def put_at(name: str, at: int | slice, value: Any) -> Change:
    """Replace one or several numbers of an array."""

    def change(_: dict[str, Any], tensors: dict[str, Any]) -> None:
        tensors[name] = tensors[name].copy()
        tensors[name].reshape(-1)[at] = value

    return change


def put_first(name: str, value: Any) -> Change:
    """Replace the first number of an array."""
    return put_at(name, 0, value)


def drop(name: str) -> Change:
    """Remove an array, or else an entry of the header."""
    return lambda header, tensors: (tensors if name in tensors else header).pop(name)


def edit(**entries: Any) -> Change:
    """Change entries of the header."""
    return lambda header, _: header.update(entries)


def edit_part(part: str, **entries: Any) -> Change:
    """Change entries of a part of the header."""
    return lambda header, _: header.update({part: {**header[part], **entries}})


def edit_entry(path: str, value: Any) -> Change:
    """Change an entry of the header, by names and indices between slashes."""

    def change(header: Any, _: dict[str, Any]) -> None:
        *folders, name = (int(key) if key.isdigit() else key for key in path.split("/"))
        for folder in folders:
            header = header[folder]
        header[name] = value

    return change


def forge(path: str, value: Any) -> Change:
    """Set an array, or an entry of the header by names and indices between slashes.

    A function gets a copy of the old value; None removes an array.
    """

    def change(header: Any, tensors: dict[str, Any]) -> None:
        holder, name = tensors, path
        if path not in tensors and not isinstance(value, np.ndarray):
            *folders, name = path.split("/")
            holder = header
            for folder in folders:
                holder = holder[folder]
        new = value(copy.deepcopy(holder[name])) if callable(value) else value
        if new is None and holder is tensors:
            del tensors[name]
        else:
            holder[name] = new

    return change


def at(place: Any, value: Any) -> Callable[[Any], Any]:
    """Set numbers of an array."""

    def change(array: Any) -> Any:
        array.reshape(-1)[place] = value
        return array

    return change


def rewritten(saved: Path, change: Change) -> Path:
    """A changed copy of a saved model, with a valid checksum."""
    header, tensors = read_model(saved)
    change(header, tensors)
    changed = saved.with_name("changed.evergrow")
    write_model(changed, header, tensors)
    return changed


def check_refused(saved: Path, change: Change, match: str | None = None) -> None:
    """Assert that a changed copy of a saved model cannot be loaded."""
    with pytest.raises(ModelFileError, match=match):
        evergrow.load(rewritten(saved, change))
