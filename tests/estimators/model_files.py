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


def forge(path: str, value: Any) -> Change:
    """Set an array, or an entry of the header by names and indices between slashes.

    A function gets a copy of the old value; None removes an array.
    """

    def change(header: Any, tensors: dict[str, Any]) -> None:
        holder: Any = tensors
        name: Any = path
        if path not in tensors and not isinstance(value, np.ndarray):
            *folders, name = (int(key) if key.isdigit() else key for key in path.split("/"))
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
