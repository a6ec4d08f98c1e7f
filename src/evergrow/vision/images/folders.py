"""Images of folders, and their classes by folder name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import BadImage, ImageError, InvalidInputError, InvalidTypeError
from evergrow.foundation.formatting import natural_order, printable
from evergrow.foundation.naming import display_name
from evergrow.vision.images.decoder import SUFFIXES
from evergrow.vision.images.label_table import LabelTable, read_label_table
from evergrow.vision.images.results import warn_about
from evergrow.vision.images.walk import Walk, list_entries

StrPath = str | os.PathLike[str]
Split = Literal["train", "test"]

# Names of the folders of splits, in any case.
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
_PREFERRED_SPLITS = {"train": ("train",), "test": ("test", "val")}
# An error names at most this many files, folders or classes.
_MAX_NAMED = 5


@dataclass(frozen=True)
class LabelledImages:
    """Images and their classes.

    Attributes
    ----------
    paths : list of Path
        The images, class by class.
    labels : ndarray of shape (n_images,)
        The class of each image.
    problems : tuple of BadImage
        Files and folders that were skipped, and why.
    unreadable : tuple of BadImage
        The subset of problems that may hide images: broken links named like images, links that
        are not followed, pipes, and folders that cannot be opened.
    split : Path or None
        The folder of a split that was chosen, such as ``photos/train``.
    fine : tuple of (str or None)
        The fine class of each image as ``labels.csv`` of a workspace has it.
    """

    paths: list[Path]
    labels: npt.NDArray[np.str_]
    problems: tuple[BadImage, ...]
    unreadable: tuple[BadImage, ...] = ()
    split: Path | None = None
    # The folder of the classes.
    root: Path = Path()
    fine: tuple[str | None, ...] = ()

    @property
    def doubt_about_depth(self) -> str | None:
        """Why the folders below the class folders may be the classes that are meant, or None."""
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
        """Says that there is one class only; None if there are more."""
        if len(set(self.labels.tolist())) > 1:
            return None
        return f"{display_name(self.root)} has one class only, {_listed(self.labels.tolist())}"


@dataclass(frozen=True)
class FoundImages:
    """Images of any folders, what could not be read there, and what was ignored by rule."""

    paths: list[Path]
    unreadable: tuple[BadImage, ...]
    ignored: tuple[BadImage, ...]


def find_images(where: StrPath | Iterable[StrPath], *, follow_links: bool = True) -> list[Path]:
    """List the images of folders.

    A folder is searched recursively for files with an image extension; hidden files are ignored.
    Each folder is read once, even if several links (symlinks) lead to it. A warning names what was
    skipped, and counts files that look like images of formats that cannot be read.

    Parameters
    ----------
    where : path, str or list of these
        A folder, a file, or a pattern such as ``"holiday/**/*.jpg"``. A file that is named
        explicitly is listed whatever its extension.
    follow_links : bool, default=True
        Whether links to files and folders are followed, also out of the folder.

    Returns
    -------
    paths : list of Path
        Sorted by name with numbers by value (``2.jpg`` before ``10.jpg``), in the same order on
        every system.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from evergrow.vision import find_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ["10.jpg", "2.jpg", "notes.txt"]:
    ...         _ = pathlib.Path(folder, name).write_text("")
    ...     [path.name for path in find_images(folder)]
    ['2.jpg', '10.jpg']
    """
    found = search_images(where, follow_links=follow_links)
    warn_about([*found.unreadable, *found.ignored])
    return found.paths


def search_images(where: StrPath | Iterable[StrPath], *, follow_links: bool = True) -> FoundImages:
    """List the images of folders as :func:`find_images` does, with everything that was skipped."""
    places = [where] if isinstance(where, (str, os.PathLike)) else list(where)
    walk = Walk(follow_links=follow_links)
    paths = [path for place in places for path in _images_at(place, walk)]
    if not paths:
        raise_unreadable(walk.unreadable)
        named = ", ".join(display_name(place) for place in places) or "an empty list"
        raise InvalidInputError(f"found no images in {named}{_skipped(walk)}; {_known_suffixes()}")
    return FoundImages(paths, walk.unreadable, walk.ignored)


def find_labelled(
    folder: StrPath, *, split: Split | None = "train", follow_links: bool = True
) -> LabelledImages:
    """List the images of a folder that has one subfolder per class.

    A folder whose subfolders are splits of a data set (``train``, ``val``, ``test``, ...), each
    with a folder per class, is recognised, and one split is listed.

    Parameters
    ----------
    folder : path
        Each subfolder is a class with the name of the subfolder; images may lie deeper inside.
        Backslashes and characters that cannot be printed are escaped, so that class names stay
        distinct. If the folders were written by ``Workspace.export_pictures``, ``labels.csv`` next
        to them has the names, which need not be those of the folders.
    split : {"train", "test"} or None, default="train"
        Which split to list if there are any: that for training, or that for measuring, which is
        ``test`` or else ``val``. With None, splits are not recognised.
    follow_links : bool, default=True
        Whether links to files and folders are followed, also out of the folder.

    Returns
    -------
    found : LabelledImages
        Paths, labels, and what was skipped: class folders without images, images outside every
        class folder, formats that cannot be read, and links that are broken or not followed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from evergrow.vision import find_labelled
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ["cat/1.jpg", "dog/1.jpg", "dog/2.jpg"]:
    ...         path = pathlib.Path(folder, name)
    ...         path.parent.mkdir(exist_ok=True)
    ...         _ = path.write_text("")
    ...     find_labelled(folder).labels.tolist()
    ['cat', 'dog', 'dog']
    """
    root = Path(folder)
    if not root.exists():
        raise FileNotFoundError(f"no such folder: {display_name(root)}")
    if not root.is_dir():
        raise NotADirectoryError(f"{display_name(root)} is not a folder")
    chosen = _choose_split(root, split, follow_links)
    root = root if chosen is None else chosen
    walk = Walk(follow_links=follow_links)
    classes = [entry.name for entry in list_entries(root) if _is_class_folder(entry, follow_links)]
    found = walk.search(root)
    if not classes:
        raise_unreadable(walk.unreadable)
        raise InvalidInputError(
            f"{display_name(root)} has no subfolders: put the images of each class into a folder "
            "of their own"
        )
    if not any(len(path.relative_to(root).parts) > 1 for path in found):
        raise_unreadable(walk.unreadable)
        raise InvalidInputError(
            f"no folder in {display_name(root)} has images{_skipped(walk)}; {_known_suffixes()}"
        )
    return replace(_label_by_folder(root, found, classes, walk), split=chosen)


def _is_class_folder(entry: os.DirEntry[str], follow_links: bool) -> bool:
    return entry.is_dir(follow_symlinks=follow_links)


def _choose_split(root: Path, split: Split | None, follow_links: bool) -> Path | None:
    """The folder of a split; None if the subfolders are not splits of a data set.

    They are if two or more have the names of splits and contain folders, and the others contain no
    images. A class that is called "train" contains images.
    """
    if split is None:
        return None
    splits: dict[str, Path] = {}
    for entry in list_entries(root):
        if _is_class_folder(entry, follow_links):
            folder = root / entry.name
            kind = _SPLITS.get(entry.name.lower())
            if kind is not None and _has_folders(folder, follow_links):
                splits[kind] = folder
            elif Walk(follow_links=follow_links).search(folder):
                return None
    for kind in _PREFERRED_SPLITS[split]:
        if kind in splits and len(splits) > 1:
            return splits[kind]
    return None


def _has_folders(folder: Path, follow_links: bool) -> bool:
    try:
        return any(_is_class_folder(entry, follow_links) for entry in list_entries(folder))
    except OSError:
        return False


def warn_doubt(found: LabelledImages) -> None:
    """Warn if the folders below the class folders may be the classes that are meant."""
    if found.doubt_about_depth is not None:
        warnings.warn(found.doubt_about_depth, UserWarning, stacklevel=3)


def raise_unreadable(unreadable: Sequence[BadImage]) -> None:
    """Raise one ``ImageError`` for all unreadable files and folders, if there are any."""
    if unreadable:
        raise ImageError.of(unreadable)


def _label_by_folder(
    root: Path, found: list[Path], classes: list[str], walk: Walk
) -> LabelledImages:
    paths, labels, problems = [], [], [*walk.unreadable, *walk.ignored]
    for path in found:
        parts = path.relative_to(root).parts
        if len(parts) == 1:
            problems.append(BadImage(None, display_name(path), "it is not in a class folder"))
        else:
            paths.append(path)
            labels.append(parts[0])
    # A folder that was skipped has its own reason.
    skipped = {problem.source for problem in problems}
    empty = sorted(
        (name for name in set(classes) - set(labels) if display_name(root / name) not in skipped),
        key=natural_order,
    )
    problems += [
        BadImage(None, display_name(root / name), "the folder has no images") for name in empty
    ]
    table = read_label_table(root) or LabelTable({}, {}, {})
    named = [table.find(path.relative_to(root)) for path in paths]
    names = [name or _class_name(folder) for (name, _), folder in zip(named, labels, strict=True)]
    return LabelledImages(
        paths,
        np.array(names),
        tuple(problems),
        walk.unreadable,
        root=root,
        fine=tuple(finer for _, finer in named),
    )


def _class_name(folder: str) -> str:
    """A printable name; distinct folder names stay distinct."""
    return printable(folder.replace("\\", r"\\"))


def _images_at(place: Any, walk: Walk) -> list[Path]:
    if not isinstance(place, (str, os.PathLike)):
        raise InvalidTypeError(f"where to find images must be a path, got {type(place).__name__}")
    path = Path(place)
    if path.is_dir():
        return walk.search(path)
    if os.path.lexists(path):
        return [path]
    # A name that exists is never read as a pattern.
    before = len(walk.unreadable)
    found = walk.match(place) if isinstance(place, str) else None
    if found is None and len(walk.unreadable) == before:
        raise FileNotFoundError(f"no file or folder matches {display_name(place)}")
    return found or []


def _skipped(walk: Walk) -> str:
    """What was skipped by rule, for the end of an error."""
    named = "; ".join(str(problem) for problem in walk.ignored[:_MAX_NAMED])
    return f" ({named})" if named else ""


def _listed(names: Iterable[str]) -> str:
    different = list(dict.fromkeys(names))
    more = ", ..." if len(different) > _MAX_NAMED else ""
    return ", ".join(different[:_MAX_NAMED]) + more


def _known_suffixes() -> str:
    return f"images are files that end in {', '.join(sorted(SUFFIXES))}"
