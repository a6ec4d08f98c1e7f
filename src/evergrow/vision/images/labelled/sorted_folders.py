"""Images sorted into class folders, with a table of the true class names next to them."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.files import atomic_folder
from evergrow.foundation.formatting import display_name
from evergrow.foundation.params import Choice, check_parameters
from evergrow.vision.images.folder_names import FolderNames
from evergrow.vision.images.label_table import COLUMNS, LABEL_TABLE, format_rows
from evergrow.vision.images.labelled.labelled_images import check_label

StrPath = str | os.PathLike[str]
Link = Literal["copy", "hard", "symbolic"]

# The folder of images that fit no class.
UNKNOWN_FOLDER = "unknown"


@dataclass(frozen=True)
class SortedImages:
    """What was sorted.

    Attributes
    ----------
    n_images : int
        Number of images in class folders.
    n_classes : int
        Number of classes.
    n_unknown : int
        Number of images in the folder ``unknown``, which fit no class.
    """

    n_images: int
    n_classes: int
    n_unknown: int


def sort_images(
    images: Iterable[StrPath],
    labels: Iterable[str | None],
    folder: StrPath,
    *,
    link: Link = "copy",
) -> SortedImages:
    """Sort image files into a new folder with one folder per class.

    The original files stay where they are. Nothing is overwritten: two files of the same name in
    one class become ``1.jpg`` and ``1 (2).jpg``. If the name of a class cannot be the name of a
    folder, the folder has another name, and ``labels.csv`` has the right one.
    :func:`find_labelled` reads this table. The new folder appears when it is complete.

    Parameters
    ----------
    images : iterable of path
        Image files.
    labels : iterable of (str or None)
        The class of each image; None for the folder ``unknown``.
    folder : path
        A new or empty folder.
    link : {"copy", "hard", "symbolic"}, default="copy"
        Whether to copy the files, or to make links. Hard links take no space, but only work on the
        same disk. Symbolic links to the absolute paths break if the files are moved.

    Returns
    -------
    sorted : SortedImages
        How many images and classes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evergrow.vision import sort_images
    >>> with tempfile.TemporaryDirectory() as place:
    ...     image = pathlib.Path(place, "1.jpg")
    ...     _ = image.write_bytes(b"")
    ...     _ = sort_images([image, image], ["cat", "a/b"], f"{place}/sorted")
    ...     sorted(path.relative_to(place).as_posix() for path in image.parent.rglob("*.jpg"))
    ['1.jpg', 'sorted/a_b/1.jpg', 'sorted/cat/1.jpg']
    """
    check_parameters({"link": link}, {"link": [Choice(tuple(_WAYS))]})
    with atomic_folder(folder) as target:
        folders = _Folders(target)
        rows: list[tuple[object, ...]] = [COLUMNS]
        n_unknown = 0
        for number, (image, label) in enumerate(zip(images, labels, strict=True), start=1):
            fault = None if label is None else check_label(label)
            if fault is not None:
                raise InvalidInputError(f"{display_name(image)}: {fault}")
            name = folders.place(Path(image).name, label)
            _put(Path(image), target / name, link)
            n_unknown += label is None
            rows.append((name, UNKNOWN_FOLDER if label is None else label, "", "", number, ""))
        (target / LABEL_TABLE).write_bytes(format_rows(rows).encode())
    n_images = len(rows) - 1 - n_unknown
    return SortedImages(n_images, len(folders.names) - bool(n_unknown), n_unknown)


class _Folders:
    """Class folders, and a name in them for each file that no other file there has."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._finder = FolderNames([LABEL_TABLE])
        self.names: dict[str | None, str] = {}
        self._files: dict[str | None, FolderNames] = {}

    def place(self, file: str, label: str | None) -> str:
        if label not in self.names:
            self.names[label] = self._finder.find(UNKNOWN_FOLDER if label is None else label)
            self._files[label] = FolderNames()
            (self._target / self.names[label]).mkdir()
        stem, suffix = os.path.splitext(file)
        return f"{self.names[label]}/{self._files[label].find(stem, suffix)}"


def _put(image: Path, target: Path, link: Link) -> None:
    if not image.is_file():
        raise InvalidInputError(f"{display_name(image)} is not a file")
    try:
        _WAYS[link](image, target)
    except OSError as error:
        if link == "hard" and error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK):
            raise InvalidInputError(
                f"{display_name(image)} cannot have a hard link there, which needs the same disk: "
                "copy it or use symbolic links"
            ) from error
        raise


def _make_symbolic(image: Path, target: Path) -> None:
    os.symlink(os.path.abspath(image), target)


_WAYS: dict[str, Callable[[Path, Path], object]] = {
    # With the times of the photographs.
    "copy": shutil.copy2,
    "hard": os.link,
    "symbolic": _make_symbolic,
}
