"""The formats of exported models; the ending of a file chooses one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergrow.export.onnx.weights import WEIGHTS, Weights
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import display_name
from evergrow.foundation.params import Choice, Nothing, check_parameters
from evergrow.storage.models.pipelines import save


@dataclass(frozen=True)
class Format:
    """One format: what it is for, and how a model is written in it.

    Attributes
    ----------
    summary : str
        What a file of this format is.
    write : callable
        ``write(model, path, weights)``.
    default_weights : {"float32", "float16"} or None
        How the weights of a network are stored by default; None if a file contains none.
    can_be_checked : bool
        Whether answers of a file can be compared with those of the model.
    """

    summary: str
    write: Callable[[Any, str | os.PathLike[str], Weights], None]
    default_weights: Weights | None
    can_be_checked: bool


def _write_model(model: Any, path: str | os.PathLike[str], _: Weights) -> None:
    save(model, path)


def _write_html(model: Any, path: str | os.PathLike[str], weights: Weights) -> None:
    from evergrow.export.html.page_file import save_html

    save_html(model, path, weights=weights)


def _write_onnx(model: Any, path: str | os.PathLike[str], weights: Weights) -> None:
    from evergrow.export.onnx.model_file import save_onnx

    save_onnx(model, path, weights=weights)


FORMATS = {
    ".evergrow": Format(
        "a model file, which Evergrow reads and can train further",
        _write_model,
        default_weights=None,
        can_be_checked=False,
    ),
    ".html": Format(
        "a page that answers and learns in any browser, without a network",
        _write_html,
        default_weights="float16",
        can_be_checked=False,
    ),
    ".onnx": Format(
        "from pixels to class probabilities, for any software that runs ONNX",
        _write_onnx,
        default_weights="float32",
        can_be_checked=True,
    ),
}


def save_as(model: Any, path: str | os.PathLike[str], *, weights: Weights | None = None) -> None:
    """Write a fitted model; the file extension chooses the format.

    Parameters
    ----------
    model : estimator
        A fitted estimator of Evergrow.
    path : path
        File to write, ending in ``.evergrow``, ``.html`` or ``.onnx``. An existing file is
        replaced.
    weights : {"float32", "float16", "int8"}, default=None
        How the weights of networks are stored, as in :func:`save_onnx`. None is "float16" for
        ``.html`` and "float32" for ``.onnx``. It must be None for ``.evergrow``.

    Examples
    --------
    >>> import os, tempfile
    >>> from evergrow import NCMClassifier
    >>> from evergrow.export import save_as
    >>> model = NCMClassifier().fit([[0, 0], [4, 4]], ["near", "far"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_as(model, f"{folder}/model.onnx")
    ...     print(os.listdir(folder))
    ['model.onnx']
    """
    kind = format_of(path, weights=weights)
    kind.write(model, path, weights or kind.default_weights or "float32")


def format_of(path: str | os.PathLike[str], *, weights: str | None = None) -> Format:
    """Return the format of a file; an ``InvalidInputError`` if there is none or it does not fit."""
    check_parameters({"weights": weights}, {"weights": [Choice(WEIGHTS), Nothing()]})
    found = FORMATS.get(Path(path).suffix.lower())
    if found is None:
        raise InvalidInputError(
            f"{display_name(path)} must end in {' or '.join(FORMATS)}, which chooses the format"
        )
    if weights is not None and found.default_weights is None:
        others = [ending for ending, one in FORMATS.items() if one.default_weights is not None]
        raise InvalidInputError(
            f"weights must be None for {display_name(path)}, got {weights!r}: only files that end "
            f"in {' or '.join(others)} contain the weights of a network"
        )
    return found
