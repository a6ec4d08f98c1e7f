"""Sorting into class folders: nothing is lost, overwritten or half written, and it can be read."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path

import pytest

from evergrow.foundation.errors import DiskFullError, InvalidInputError
from evergrow.vision import find_labelled, sort_images
from evergrow.vision.images.labelled import sorted_folders
from tests.vision.images.labelled.files import pictures

NAMES = ["cup", "Cup", "a/b", "NUL", "=1+1", "猫", "labels.csv", "unknown", "."]


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("link", ["copy", "hard", "symbolic"])
def test_what_was_sorted_has_the_same_labels_again(tmp_path: Path, link: str) -> None:
    if link != "copy" and sys.platform == "win32":
        pytest.skip("links need rights on Windows")
    images = []
    for i, _ in enumerate(NAMES):
        pictures(tmp_path / str(i), "red", n=1, seed=i)
        images += [tmp_path / str(i) / f"r{i}.png"] * 2
    labels = [name for name in NAMES for _ in range(2)]
    before = tree(tmp_path)
    done = sort_images(images, labels, tmp_path / "sorted", link=link)  # type: ignore[arg-type]
    assert (done.n_images, done.n_classes, done.n_unknown) == (len(images), len(NAMES), 0)
    found = find_labelled(tmp_path / "sorted")
    contents = sorted(zip((one.read_bytes() for one in found.paths), found.labels, strict=True))
    assert contents == sorted(zip((one.read_bytes() for one in images), labels, strict=True))
    assert find_labelled(tmp_path / "sorted" / "labels.csv").labels.tolist() == labels
    shutil.rmtree(tmp_path / "sorted")
    assert tree(tmp_path) == before


def test_files_of_the_same_name_are_both_kept(tmp_path: Path) -> None:
    for i in range(3):
        pictures(tmp_path / str(i), "red", n=1)
        (tmp_path / str(i) / "r0.png").write_bytes(bytes([i]))
    images = [tmp_path / str(i) / "r0.png" for i in range(3)]
    sort_images(images, ["red"] * 3, tmp_path / "sorted")
    names = ["red/r0 (2).png", "red/r0 (3).png", "red/r0.png"]
    found = tree(tmp_path / "sorted")
    assert sorted(found)[1:] == names
    assert {found[name] for name in names} == {b"\0", b"\1", b"\2"}


def test_images_without_a_class_have_a_folder_of_their_own(tmp_path: Path) -> None:
    images = [tmp_path / name for name, _ in pictures(tmp_path)]
    labels = [None, "unknown", "red", None, "green", "green"]
    done = sort_images(images, labels, tmp_path / "sorted")
    assert (done.n_images, done.n_classes, done.n_unknown) == (4, 3, 2)
    folders = {path.name: len(list(path.iterdir())) for path in (tmp_path / "sorted").glob("*/")}
    assert folders == {"unknown": 2, "unknown (2)": 1, "red": 1, "green": 2}


def test_the_times_of_photographs_are_kept(tmp_path: Path) -> None:
    pictures(tmp_path, "red", n=1)
    os.utime(tmp_path / "r0.png", (1e9, 1e9))
    sort_images([tmp_path / "r0.png"], ["red"], tmp_path / "sorted")
    assert (tmp_path / "sorted" / "red" / "r0.png").stat().st_mtime == 1e9


@pytest.mark.parametrize("what", ["missing", "label", "disk"])
def test_after_an_error_nothing_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    pictures(tmp_path / "images", "red")
    images = [tmp_path / "images" / f"r{i}.png" for i in range(3)]
    labels = ["red"] * 3
    error: type[Exception] = InvalidInputError
    if what == "missing":
        images[2].unlink()
    elif what == "label":
        labels[2] = "a\nb"
    else:
        n_copied = iter(range(9))

        def copy(source: Path, target: Path) -> None:
            if next(n_copied) == 2:
                raise OSError(errno.ENOSPC, "no space")
            shutil.copy(source, target)

        monkeypatch.setitem(sorted_folders._WAYS, "copy", copy)
        error = DiskFullError
    with pytest.raises(error):
        sort_images(images, labels, tmp_path / "sorted")
    assert [path.name for path in tmp_path.iterdir()] == ["images"]


def test_a_folder_with_content_is_refused(tmp_path: Path) -> None:
    pictures(tmp_path, "red", n=1)
    (tmp_path / "sorted").mkdir()
    sort_images([tmp_path / "r0.png"], ["red"], tmp_path / "sorted")
    before = tree(tmp_path)
    with pytest.raises(InvalidInputError, match="not empty"):
        sort_images([tmp_path / "r0.png"], ["red"], tmp_path / "sorted")
    with pytest.raises(InvalidInputError, match="not empty"):
        sort_images([tmp_path / "r0.png"], ["red"], tmp_path / "r0.png")
    assert tree(tmp_path) == before


def test_hard_links_to_another_disk_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures(tmp_path, "red", n=1)

    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "another device")

    monkeypatch.setitem(sorted_folders._WAYS, "hard", refuse)
    with pytest.raises(InvalidInputError, match="needs the same disk"):
        sort_images([tmp_path / "r0.png"], ["red"], tmp_path / "sorted", link="hard")
