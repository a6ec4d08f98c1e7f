"""Images in class folders: one subfolder per class, or splits with these."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from evergrow.foundation.errors import BadImage, InvalidInputError
from evergrow.foundation.formatting import display_name, natural_order, printable
from evergrow.vision.images.folders import describe_skipped, known_suffixes, raise_unreadable
from evergrow.vision.images.label_table import LabelTable, read_label_table
from evergrow.vision.images.labelled.labelled_images import (
    LabelledImages,
    choose_split,
    label_array,
    split_kind,
)
from evergrow.vision.images.walk import Walk, list_entries


def read_class_folders(root: Path, *, split: str | None, follow_links: bool) -> LabelledImages:
    """List the images of a folder with one subfolder per class, or with splits of such folders."""
    chosen = None
    splits = {} if split is None else _find_splits(root, follow_links)
    if split is not None and splits:
        chosen = choose_split(splits, split, display_name(root))
    root = root if chosen is None else chosen
    walk = Walk(follow_links=follow_links)
    classes = [entry.name for entry in list_entries(root) if _is_class_folder(entry, follow_links)]
    found = walk.search(root)
    if not classes:
        raise_unreadable(walk.unreadable)
        # With images it is probably the folder of one class, unless it lies in the current folder.
        parent = _parent(root)
        is_class = bool(found) and parent != Path()
        instead = f"give its parent folder {display_name(parent)}, or " if is_class else ""
        raise InvalidInputError(
            f"{display_name(root)} has no subfolders: {instead}put the images of each class into a "
            "folder of their own"
        )
    if not any(len(path.relative_to(root).parts) > 1 for path in found):
        raise_unreadable(walk.unreadable)
        raise InvalidInputError(
            f"no folder in {display_name(root)} has images{describe_skipped(walk)}; "
            f"{known_suffixes()}"
        )
    return replace(_label_by_folder(root, found, classes, walk), split=chosen, splits=tuple(splits))


def _parent(folder: Path) -> Path:
    """The folder around a folder, which may be called "." or ".."."""
    return folder / ".." if folder.name in ("", "..") else folder.parent


def _is_class_folder(entry: os.DirEntry[str], follow_links: bool) -> bool:
    return entry.is_dir(follow_symlinks=follow_links)


def _find_splits(root: Path, follow_links: bool) -> dict[str, Path]:
    """The folders of splits; none if the subfolders are not splits of a data set.

    They are if two or more have the names of splits and contain folders, and the others contain no
    images. A class that is called "train" contains images.
    """
    splits: dict[str, Path] = {}
    for entry in list_entries(root):
        if _is_class_folder(entry, follow_links):
            folder = root / entry.name
            kind = split_kind(entry.name)
            if kind is not None and _has_folders(folder, follow_links):
                splits[kind] = folder
            elif Walk(follow_links=follow_links).search(folder):
                return {}
    return splits if len(splits) > 1 else {}


def _has_folders(folder: Path, follow_links: bool) -> bool:
    try:
        return any(_is_class_folder(entry, follow_links) for entry in list_entries(folder))
    except OSError:
        return False


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
        label_array(names, root),
        tuple(problems),
        walk.unreadable,
        root=root,
        fine=tuple(finer for _, finer in named),
        by_folder=True,
    )


def _class_name(folder: str) -> str:
    """A printable name; distinct folder names stay distinct."""
    return printable(folder.replace("\\", r"\\"))
