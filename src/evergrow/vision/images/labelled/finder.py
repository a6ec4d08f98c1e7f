"""Which reader takes which source of labelled images."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Literal

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import display_name, natural_order
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

    See :doc:`/formats`.

    Parameters
    ----------
    source : path
        One of these:

        - a folder with one subfolder per class, whose name is the class. Images may be in deeper
          folders. The class folders may be inside the splits ``train``, ``val`` and ``test``;
        - an export of a workspace, whose ``labels.csv`` has the names of the classes;
        - a ``.csv`` or ``.tsv`` file with a column of paths and a column of labels;
        - COCO annotations in a ``.json`` file;
        - WebDataset shards: ``.tar``, ``.tar.gz`` or ``.tgz`` files, or a pattern such as
          ``"shards/train-{000..009}.tar"`` or ``"shards/*.tar"``. Images are read in place.
    split : {"train", "val", "test"} or None, default="train"
        Which split to list, if the folder or the column ``split`` of the table has any. For
        ``"test"``, ``val`` is used if there is no ``test``. With None, ``train`` and ``test`` are
        ordinary classes.
    follow_links : bool, default=True
        Whether symlinks to files and folders are followed, also out of the folder.
    columns : tuple of str, default=None
        Names of the columns of paths and labels in a table. None recognises the usual names, such
        as path and label, or image and class.
    crop : bool, default=False
        Whether each box of COCO annotations is an image. With False, all annotations of an image
        must have the same category.
    images : path, default=None
        Folder to which paths in a table or in annotations are relative. None is the folder of that
        file.
    outside : bool, default=False
        Whether to accept absolute paths and paths out of this folder in a table or in annotations.
        Use it only for files that you trust.

    Returns
    -------
    found : LabelledImages
        The images, their labels, and what was skipped, such as files in formats that cannot be read
        and broken symlinks.

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
