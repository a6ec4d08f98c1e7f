"""A plot of the confusion matrix."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.atomic import atomic_write
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import printable

# With more classes, the numbers or names would overlap.
_MAX_NUMBERED = 25
_MAX_NAMED = 80
_MAX_NAME_LENGTH = 30
_REJECTED = "unknown"
_FORMATS = (".svg", ".png")


def draw_confusion(
    counts: npt.ArrayLike,
    classes: npt.ArrayLike,
    path: str | os.PathLike[str],
    *,
    rejected: npt.ArrayLike | None = None,
) -> None:
    """Plot how often images of each class were predicted as which class.

    Parameters
    ----------
    counts : array-like of shape (n_classes, n_classes)
        Number of images of the class of the row that were predicted as the class of the column.
    classes : array-like of shape (n_classes,)
        Names of the classes.
    path : path
        File to write, ``.svg`` or ``.png``; an existing file is replaced atomically.
    rejected : array-like of shape (n_classes,), default=None
        Number of images of each class that were rejected. They get a column "unknown" if there are
        any, and count in the total.

    Examples
    --------
    >>> import tempfile, os
    >>> from evergrow.vision import draw_confusion
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "confusion.svg")
    ...     draw_confusion([[8, 2], [1, 9]], ["cat", "dog"], path)
    ...     os.path.getsize(path) > 1000
    True
    """
    target = Path(path)
    if target.suffix.lower() not in _FORMATS:
        raise InvalidInputError(
            f"the file name must end in {' or '.join(_FORMATS)}, got {target.name!r}"
        )
    names = [printable(str(one)) for one in np.asarray(classes)]
    table, answers = np.asarray(counts), names
    if rejected is not None and np.any(rejected):
        table = np.column_stack([table, np.asarray(rejected)])
        answers = [*names, _REJECTED]
    figure = _figure(table, names, answers)
    content = io.BytesIO()
    with warnings.catch_warnings():
        # Letters that the font lacks are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        figure.savefig(content, format=target.suffix.lower()[1:], dpi=150, bbox_inches="tight")
    with atomic_write(target) as file:
        file.write(content.getvalue())


def _figure(counts: npt.NDArray[np.int64], names: list[str], answers: list[str]) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "evergrow[plot]"') from error
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    side = 3.0 + 0.22 * min(len(names), _MAX_NAMED)
    figure = Figure(figsize=(side + 1, side))
    axes = figure.add_subplot()
    image = axes.imshow(shares, cmap="cividis", vmin=0, vmax=1)
    figure.colorbar(image, label="share of the class", shrink=0.8)
    axes.set(xlabel="answer", ylabel="class", title=f"{np.trace(counts)} of {counts.sum()} right")
    _name_ticks(axes.set_yticks, names)
    _name_ticks(axes.set_xticks, answers, rotation=90)
    if len(names) <= _MAX_NUMBERED:
        for (row, column), count in np.ndenumerate(counts):
            if count:
                shade = "black" if shares[row, column] > 0.5 else "white"
                axes.text(column, row, str(count), ha="center", va="center", color=shade)
    return figure


def _name_ticks(set_ticks: Any, names: list[str], **options: Any) -> None:
    if len(names) > _MAX_NAMED:
        return
    most = _MAX_NAME_LENGTH
    short = [name if len(name) <= most else name[: most - 1] + "…" for name in names]
    # A dollar sign in a name does not start a formula.
    set_ticks(range(len(names)), short, parse_math=False, **options)
