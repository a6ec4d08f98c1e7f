"""Which reader takes which source of labelled images."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Literal

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import natural_order
from evergrow.foundation.naming import display_name
from evergrow.vision.images.labelled import coco, table, webdataset
from evergrow.vision.images.labelled.class_folders import read_class_folders
from evergrow.vision.images.labelled.labelled_images import LabelledImages
from evergrow.vision.images.labelled.named_files import NamedFiles

StrPath = str | os.PathLike[str]
Split = Literal["train", "val", "test"]


def find_labelled(
    source: StrPath,
    *,
    split: Split | None = "train",
    follow_links: bool = True,
    columns: tuple[str, str] | None = None,
    crop: bool = False,
    images: StrPath | None = None,
    outside: bool = False,
) -> LabelledImages:
    r"""List labelled images: class folders, a table, COCO annotations or WebDataset tar files.

    The format is recognised by the source: a folder has one subfolder per class, or splits of a
    data set (``train``, ``val``, ``test``, ...) with these; a file that ends in ``.csv`` or
    ``.tsv`` has a column of paths and a column of labels, ``.json`` is COCO, and ``.tar``,
    ``.tar.gz`` and ``.tgz`` are WebDataset shards, whose images are read in place.

    Parameters
    ----------
    source : path
        In a folder, each subfolder is a class with the name of the subfolder; images may lie deeper
        inside. Backslashes and characters that cannot be printed are escaped, so that class names
        stay distinct. If the folders were written by ``Workspace.export_pictures``, ``labels.csv``
        next to them has the names, which need not be those of the folders. Tar files may be a
        pattern: ``"shards/train-{000..009}.tar"`` or ``"shards/*.tar"``.
    split : {"train", "val", "test"} or None, default="train"
        Which split to list if there are any, in a folder or in the column ``split`` of a table.
        For ``"test"``, ``val`` is taken if there is no ``test``. With None, splits are not
        recognised.
    follow_links : bool, default=True
        Whether links to files and folders are followed, also out of the folder.
    columns : tuple of str, default=None
        The names of the columns of paths and labels in a table; None to recognise the usual names,
        such as path and label, or image and class.
    crop : bool, default=False
        Take each box of COCO annotations as an image. Otherwise all annotations of an image must
        have one category.
    images : path, default=None
        The folder that names in a table or in annotations are relative to; None for the folder of
        that file.
    outside : bool, default=False
        Accept names in a table or in annotations that are absolute or leave this folder. Use it
        only for files that you trust.

    Returns
    -------
    found : LabelledImages
        Images, labels, and what was skipped: class folders without images, images outside every
        class folder, formats that cannot be read, links that are broken or not followed, and bad
        rows of tables by their line numbers.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from evergrow.vision import find_labelled
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ["cat/1.jpg", "dog/1.jpg", "dog/2.jpg"]:
    ...         path = pathlib.Path(folder, name)
    ...         path.parent.mkdir(exist_ok=True)
    ...         _ = path.write_text("")
    ...     table = pathlib.Path(folder, "table.csv")
    ...     _ = table.write_text("image,class\ncat/1.jpg,pet\ndog/2.jpg,guard\n")
    ...     find_labelled(folder).labels.tolist(), find_labelled(table).labels.tolist()
    (['cat', 'dog', 'dog'], ['pet', 'guard'])
    """
    path = Path(source)
    kind = source_kind(source)
    if kind == "webdataset":
        _refuse_options(source, columns=columns, crop=crop, images=images)
        return webdataset.read_webdataset(_tar_files(source), path)
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {display_name(path)}")
    if kind == "folder":
        _refuse_options(source, columns=columns, crop=crop, images=images)
        return read_class_folders(path, split=split, follow_links=follow_links)
    if kind is None:
        raise NotADirectoryError(
            f"{display_name(path)} is not a folder, and not a file that ends in {_endings()}"
        )
    files = NamedFiles(
        path.parent if images is None else Path(images), outside=outside, follow_links=follow_links
    )
    if kind == "table":
        _refuse_options(source, crop=crop)
        return table.read_table(path, files, split=split, columns=columns)
    _refuse_options(source, columns=columns)
    return coco.read_coco(path, files, crop=crop)


def source_kind(source: StrPath) -> Literal["folder", "table", "coco", "webdataset"] | None:
    """The format of a source by its name; None for other files. A folder need not end in a slash.

    >>> source_kind("photos.csv"), source_kind("train-{0..9}.tar"), source_kind("model.onnx")
    ('table', 'webdataset', None)
    """
    name = os.fspath(source).lower()
    if os.path.isdir(source):
        return "folder"
    # A pattern may end in braces.
    if name.removesuffix("}").endswith(webdataset.SUFFIXES):
        return "webdataset"
    if name.endswith(table.SUFFIXES):
        return "table"
    if name.endswith(coco.SUFFIX):
        return "coco"
    return None


def _tar_files(source: StrPath) -> list[Path]:
    """The files of a name or pattern, in natural order; a name that exists is never a pattern."""
    if os.path.lexists(source):
        return [Path(source)]
    paths: list[Path] = []
    for name in webdataset.expand_braces(os.fspath(source)):
        found = [name] if os.path.lexists(name) else glob.glob(name)
        if not found:
            raise FileNotFoundError(f"no file matches {display_name(name)}")
        paths += map(Path, sorted(found, key=natural_order))
    return paths


def _refuse_options(source: StrPath, **options: object) -> None:
    needs = {"columns": "tables", "crop": "COCO annotations", "images": "tables and annotations"}
    for name, value in options.items():
        if value:
            raise InvalidInputError(
                f"{name} is for {needs[name]}, which {display_name(source)} is not"
            )


def _endings() -> str:
    return ", ".join((*table.SUFFIXES, coco.SUFFIX, *webdataset.SUFFIXES))
