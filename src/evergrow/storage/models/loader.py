"""Reading any saved model back."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy.typing as npt

from evergrow.foundation.errors import ModelFileError
from evergrow.storage.models.format import read_model
from evergrow.storage.models.pipelines import READERS

# The rooms whose public estimators can be loaded. Strings, not imports: they lie above this room.
_ROOMS = ("evergrow.estimators", "evergrow.vision")


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that was written with ``save`` or :func:`evergrow.save`.

    Nothing in the file is executed: arrays and JSON only, checked against a SHA-256 checksum and
    against each other before use.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    estimator : estimator
        Ready to predict, with the parameters it was saved with.

    Raises
    ------
    evergrow.ModelFileError
        If the file is truncated, damaged, inconsistent or from a newer version.

    Examples
    --------
    >>> import evergrow, tempfile, os
    >>> forest = evergrow.NCMForestClassifier(3, min_samples_leaf=1, random_state=0)
    >>> forest = forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     forest.save(os.path.join(folder, "model.evergrow"))
    ...     evergrow.load(os.path.join(folder, "model.evergrow")).n_estimators
    3
    """
    header, tensors = read_model(path)
    try:
        return _build(header, tensors)
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r}: {error}") from error
    except RecursionError as error:
        raise ModelFileError(f"{str(path)!r} is nested too deeply") from error
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"{str(path)!r} has damaged parameters: {error}") from error


def _build(header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]) -> Any:
    name = header.get("estimator")
    if not isinstance(name, str) or (reader := _find_reader(name)) is None:
        known = sorted({*loadable_estimators(), *READERS})
        raise ModelFileError(f"it holds an unknown estimator {name!r}, this version knows {known}")
    return reader._from_file(header, tensors, _build)


def _find_reader(name: str) -> Any:
    """What reads the files of an estimator; None if its name is not known."""
    for room in map(import_module, _ROOMS):
        if name in room.__all__ and hasattr(getattr(room, name), "_from_file"):
            return getattr(room, name)
    return READERS.get(name)


def loadable_estimators() -> list[str]:
    """The names of all estimators that model files can hold."""
    listed = [name for room in _ROOMS for name in import_module(room).__all__]
    return [name for name in listed if _find_reader(name) is not None]
