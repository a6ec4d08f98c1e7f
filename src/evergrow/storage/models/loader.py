"""Reading any saved model back."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from functools import partial
from importlib import import_module
from typing import Any

import numpy.typing as npt

from evergrow.foundation.errors import InvalidTypeError, ModelFileError
from evergrow.storage.models.format import read_model
from evergrow.storage.models.header import limit_threads
from evergrow.storage.models.pipelines import READERS

# The rooms whose public estimators can be loaded. Strings, not imports: they lie above this room.
_ROOMS = ("evergrow.estimators", "evergrow.vision")
# The names of arrays that are networks, also of models inside other models.
_NETWORK = re.compile(r"(.*/)?onnx[0-9]*")


def load(
    path: str | os.PathLike[str],
    *,
    expect: type | tuple[type, ...] | None = None,
    max_bytes: int | None = None,
    networks: bool = True,
) -> Any:
    """Load a model that was written with ``save`` or :func:`evergrow.save`.

    A model file contains arrays and JSON, but no code. Its SHA-256 checksum and the consistency of
    its parts are checked before use. A file may contain a neural network, which runs when images
    are embedded. Pass ``networks=False`` to refuse such files if you do not trust their author. See
    :doc:`/model_files`.

    Parameters
    ----------
    path : path
        The file.
    expect : type or tuple, default=None
        Classes of estimators to accept, for example ``RLSClassifier``. A file with another
        estimator is refused before its arrays are read. None accepts all.
    max_bytes : int, default=None
        Size of the largest file to accept, in bytes. None accepts any size.
    networks : bool, default=True
        Whether the file may contain a neural network.

    Returns
    -------
    estimator : estimator
        The fitted model, with the parameters it was saved with. It can predict and, unless it was
        saved with ``inference_only=True``, learn further.

    Raises
    ------
    evergrow.ModelFileError
        If the file is truncated, damaged, inconsistent or of another format version.

    See Also
    --------
    save : Write a model or a pipeline.

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
    header, tensors = read_model(
        path,
        max_bytes=max_bytes,
        check_header=partial(_check_wanted, str(path), expect, networks),
    )
    try:
        return _build(limit_threads(header), tensors)
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r}: {error}") from error
    except RecursionError as error:
        raise ModelFileError(f"{str(path)!r} is nested too deeply") from error
    except MemoryError as error:
        raise ModelFileError(f"{str(path)!r} needs more memory than there is") from error
    # A header may hold values of any type where others are expected.
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise ModelFileError(f"{str(path)!r} has damaged parameters: {error}") from error


def _check_wanted(
    path: str,
    expect: type | tuple[type, ...] | None,
    networks: bool,
    header: dict[str, Any],
    arrays: Collection[str],
) -> None:
    """Raise a ``ModelFileError`` unless the file holds what the caller expects."""
    wanted = () if expect is None else expect if isinstance(expect, tuple) else (expect,)
    if not all(isinstance(each, type) for each in wanted):
        raise InvalidTypeError(f"expect must be a class or a tuple of classes, got {expect!r}")
    names = [each.__name__ for each in wanted]
    if names and header.get("estimator") not in names:
        raise ModelFileError(
            f"{path!r} holds {header.get('estimator')!r}, expected is {' or '.join(names)}"
        )
    if not networks and any(_NETWORK.fullmatch(name) for name in arrays):
        raise ModelFileError(f"{path!r} contains a network, which networks=False does not allow")


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
