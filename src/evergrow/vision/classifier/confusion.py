"""A plot of the confusion matrix, and which classes of a large one to show."""

from __future__ import annotations

import io
import os
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.extras import install_command
from evergrow.foundation.files import atomic_write
from evergrow.foundation.formatting import natural_order, printable

# With more classes, the numbers or names would overlap.
_MAX_NUMBERED = 40
_MAX_SHOWN = 60
_MAX_NAME_LENGTH = 30
_REJECTED = "unknown"
_FORMATS = (".svg", ".png")

Name = TypeVar("Name", bound=Hashable)


def draw_confusion(
    counts: npt.ArrayLike,
    classes: npt.ArrayLike,
    path: str | os.PathLike[str],
    *,
    rejected: npt.ArrayLike | None = None,
) -> None:
    """Plot how often images of each class were predicted as which class.

    Rows are the classes that have images, columns the predicted classes. Of more than 60 classes,
    those that are confused most often are shown, and the title says so.

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
    table = np.asarray(counts)
    unknown = np.zeros(len(table), dtype=np.int64) if rejected is None else np.asarray(rejected)
    figure = _figure(_Shown.of(table, unknown, names))
    content = io.BytesIO()
    with warnings.catch_warnings():
        # Letters that the font lacks are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        figure.savefig(content, format=target.suffix.lower()[1:], dpi=150, bbox_inches="tight")
    with atomic_write(target) as file:
        file.write(content.getvalue())


@dataclass(frozen=True)
class _Shown:
    """The part of a confusion matrix that is drawn; its last column may be "unknown"."""

    counts: npt.NDArray[np.int64]
    # Of the images of each row, which may be more than those in the shown columns.
    shares: npt.NDArray[np.float64]
    rows: list[str]
    columns: list[str]
    title: str

    @classmethod
    def of(
        cls, counts: npt.NDArray[np.int64], rejected: npt.NDArray[np.int64], names: list[str]
    ) -> _Shown:
        """Choose the classes with images and the predicted ones, in the natural order of names."""
        title = f"{np.trace(counts)} of {counts.sum() + rejected.sum()} right"
        tested = counts.sum(axis=1) + rejected > 0
        used = tested | (counts.sum(axis=0) > 0)
        if used.sum() > _MAX_SHOWN:
            used, which = _most_confused(counts, tested)
            title = f"{title}\n{which} of {len(names)} classes"
        order = sorted(np.flatnonzero(used).tolist(), key=lambda k: natural_order(names[k]))
        rows, heads = [k for k in order if tested[k]], [names[k] for k in order]
        part, images = counts[np.ix_(rows, order)], (counts.sum(axis=1) + rejected)[rows]
        if rejected.any():
            part, heads = np.column_stack([part, rejected[rows]]), [*heads, _REJECTED]
        return cls(part, part / images[:, None], [names[k] for k in rows], heads, title)


def _most_confused(
    counts: npt.NDArray[np.int64], tested: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], str]:
    """Choose both classes of the most frequent confusions, as many as can be shown."""
    true, predicted = np.nonzero(counts)
    cells = zip(true.tolist(), predicted.tolist(), counts[true, predicted].tolist(), strict=True)
    found = most_confused(cells, _MAX_SHOWN)
    if not found:
        return tested & (np.cumsum(tested) <= _MAX_SHOWN), f"none is confused; {_MAX_SHOWN}"
    chosen = np.zeros(len(counts), dtype=bool)
    chosen[list(found)] = True
    return chosen, f"the {len(found)} most often confused"


def figure_class() -> Any:
    """Return the class of figures; without matplotlib, raise an error that says what to install."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"plots need matplotlib: {install_command('plot')}") from error
    return Figure


def _figure(shown: _Shown) -> Any:
    width, height = (3.0 + 0.22 * len(names) for names in (shown.columns, shown.rows))
    figure = figure_class()(figsize=(width + 1, height))
    axes = figure.add_subplot()
    image = axes.imshow(shown.shares, cmap="cividis", vmin=0, vmax=1)
    figure.colorbar(image, label="share of the true class", format="{x:.0%}", shrink=0.8)
    axes.set(xlabel="predicted class", ylabel="true class", title=shown.title)
    _name_ticks(axes.set_yticks, shown.rows)
    _name_ticks(axes.set_xticks, shown.columns, rotation=90)
    if len(shown.columns) <= _MAX_NUMBERED:
        for (row, column), count in np.ndenumerate(shown.counts):
            if count:
                shade = "black" if shown.shares[row, column] > 0.5 else "white"
                style: dict[str, Any] = {"ha": "center", "va": "center", "color": shade}
                axes.text(column, row, str(count), fontsize=8, **style)
    return figure


def _name_ticks(set_ticks: Any, names: list[str], **options: Any) -> None:
    most = _MAX_NAME_LENGTH
    short = [name if len(name) <= most else name[: most - 1] + "…" for name in names]
    # A dollar sign in a name does not start a formula.
    set_ticks(range(len(names)), short, parse_math=False, fontsize=8, **options)


def most_confused(cells: Iterable[tuple[Name, Name, int]], most: int) -> set[Name]:
    """Return both classes of the most frequent confusions, at most ``most`` classes.

    A cell has the true class, the predicted class and the number of examples. Confusions of two
    classes count in both directions. A pair is taken as a whole: half of it would hide the mistake.

    >>> cells = [("cat", "cat", 9), ("cat", "dog", 2), ("dog", "cat", 2), ("cow", "yak", 3)]
    >>> sorted(most_confused(cells, 2)), sorted(most_confused(cells, 3))
    (['cat', 'dog'], ['cat', 'dog'])
    """
    mistakes: Counter[frozenset[Name]] = Counter()
    for true, predicted, n in cells:
        if true != predicted:
            mistakes[frozenset((true, predicted))] += n
    chosen: set[Name] = set()
    for pair, _ in mistakes.most_common():
        if len(chosen | pair) <= most:
            chosen |= pair
    return chosen
