"""Images and their classes, as all readers return them."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import BadImage, InvalidInputError
from evergrow.foundation.formatting import display_name, format_size, list_names
from evergrow.vision.images.sources import StoredImage

Found = TypeVar("Found")

# Names of splits, in any case, and which of three they are.
_SPLITS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
    "testing": "test",
}
# What may replace a split that is missing.
_NEXT_BEST = {"test": "val"}
# An error names at most this many files, folders or classes.
_MAX_NAMED = 5
# As in workspaces.
_LONGEST_LABEL = 200
# Labels are an array in which each takes as much memory as the longest one.
_MAX_LABEL_BYTES = 4 << 30
# Controls, halves of surrogate pairs, separators of lines and paragraphs.
_NOT_IN_NAMES = {"Cc", "Cs", "Zl", "Zp"}


@dataclass(frozen=True)
class LabelledImages:
    """Images and their classes; the result of :func:`find_labelled`.

    Attributes
    ----------
    sources : list of Path or StoredImage
        The images: paths of files, or places inside larger files such as tar files. They are read
        when they are needed.
    labels : ndarray of shape (n_images,)
        The class of each image.
    problems : tuple of BadImage
        Files, folders and rows that were skipped, and why.
    unreadable : tuple of BadImage
        The problems that may hide images: broken symlinks, symlinks that are not followed, pipes,
        folders that cannot be opened, and bad rows of a table.
    split : Path or None
        The split that was used: a folder such as ``photos/train``, or a value in the column
        ``split`` of a table.
    splits : tuple of str
        The splits of the source, among train, val and test.
    fine : tuple of (str or None)
        The fine class of each image, if the source is an export of a workspace.
    """

    sources: Sequence[Path | StoredImage]
    labels: npt.NDArray[np.str_]
    problems: tuple[BadImage, ...]
    unreadable: tuple[BadImage, ...] = ()
    split: Path | None = None
    splits: tuple[str, ...] = ()
    # The folder of the classes, or the file that names the images.
    root: Path = Path()
    fine: tuple[str | None, ...] = ()
    # Whether the classes are the names of folders below the root.
    by_folder: bool = False

    @property
    def paths(self) -> list[Path]:
        """The paths of the images; an error if images are inside larger files."""
        paths = [source for source in self.sources if isinstance(source, Path)]
        if len(paths) < len(self.sources):
            raise InvalidInputError(
                f"images of {display_name(self.root)} are not files of their own: use sources"
            )
        return paths

    @property
    def doubt_about_depth(self) -> str | None:
        """Why the folders below the class folders may be the classes that are meant, or None.

        :meta private:
        """
        if not self.by_folder:
            return None
        parts = [path.relative_to(self.root).parts for path in self.paths]
        if any(len(one) == 2 for one in parts):
            return None
        return (
            f"no class folder of {display_name(self.root)} has images itself: the classes would "
            f"be {_listed(one[0] for one in parts)}, and the folders in them are "
            f"{_listed(one[1] for one in parts)}"
        )

    @property
    def doubt_about_number(self) -> str | None:
        """Says that there is one class only; None if there are more.

        :meta private:
        """
        if len(set(self.labels.tolist())) > 1:
            return None
        return f"{display_name(self.root)} has one class only, {_listed(self.labels.tolist())}"


def warn_doubt(found: LabelledImages) -> None:
    """Warn if the folders below the class folders may be the classes that are meant."""
    if found.doubt_about_depth is not None:
        warnings.warn(found.doubt_about_depth, UserWarning, stacklevel=3)


def split_kind(name: str) -> str | None:
    """Which split a name means, of train, val and test; None for other names.

    >>> split_kind("Validation"), split_kind("cat")
    ('val', None)
    """
    return _SPLITS.get(name.lower())


def choose_split(found: Mapping[str, Found], wanted: str, where: str) -> Found:
    """The wanted split, or val if there is no test; an error if there is neither."""
    kind = split_kind(wanted)
    if kind is None:
        raise InvalidInputError(f"split must be train, val or test, got {wanted!r}")
    for name in (kind, _NEXT_BEST.get(kind, kind)):
        if name in found:
            return found[name]
    raise InvalidInputError(
        f"{where} has the splits {list_names(sorted(found))}, but not {kind}: name one of them, or "
        "none if these are classes"
    )


def check_label(label: str) -> str | None:
    r"""Why a text cannot be a class, or None if it can.

    >>> check_label("cup"), check_label(" "), check_label("a\0b")
    (None, 'it has no label', 'its label has a control character')
    """
    if not label.strip():
        return "it has no label"
    if len(label) > _LONGEST_LABEL:
        return f"its label has {len(label)} characters, more than {_LONGEST_LABEL}"
    if not label.isprintable() and any(unicodedata.category(one) in _NOT_IN_NAMES for one in label):
        return "its label has a control character"
    return None


def label_array(labels: Sequence[str], where: Path) -> npt.NDArray[np.str_]:
    """Labels as an array; an error if a few long ones would make it very large."""
    n_bytes = 4 * len(labels) * max(map(len, labels), default=0)
    if n_bytes > _MAX_LABEL_BYTES:
        raise InvalidInputError(
            f"the labels of {display_name(where)} would take {format_size(n_bytes)} of memory: use "
            "shorter names"
        )
    return np.array(labels, dtype=np.str_)


def require_images(
    images: Sequence[Any], problems: Sequence[BadImage], where: Path, what: str
) -> None:
    """Raise an error that names the first problems if there is no image at all."""
    if not images:
        named = "; ".join(str(problem) for problem in problems[:_MAX_NAMED])
        more = f"; and {len(problems) - _MAX_NAMED} more" if len(problems) > _MAX_NAMED else ""
        told = f": {named}{more}" if named else ""
        raise InvalidInputError(f"found no {what} in {display_name(where)}{told}")


def _listed(names: Iterable[str]) -> str:
    different = list(dict.fromkeys(names))
    more = ", ..." if len(different) > _MAX_NAMED else ""
    return ", ".join(different[:_MAX_NAMED]) + more
