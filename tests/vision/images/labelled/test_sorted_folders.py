"""Sorting into class folders with portable names: nothing is lost or half written."""

from __future__ import annotations

import errno
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergrow.foundation.errors import DiskFullError, InvalidInputError, WorkspaceError
from evergrow.vision import find_labelled, sort_images
from evergrow.vision.images.folder_names import FolderNames
from evergrow.vision.images.labelled import sorted_folders
from evergrow.workspace.names import normalise_name
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


def test_images_without_a_class_have_a_folder_of_their_own(tmp_path: Path) -> None:
    images = [tmp_path / name for name, _ in pictures(tmp_path)]
    labels = [None, "unknown", "red", None, "green", "green"]
    done = sort_images(images, labels, tmp_path / "sorted")
    assert (done.n_images, done.n_classes, done.n_unknown) == (4, 3, 2)
    folders = {path.name: len(list(path.iterdir())) for path in (tmp_path / "sorted").glob("*/")}
    assert folders == {"unknown": 2, "unknown (2)": 1, "red": 1, "green": 2}


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


DEVICES = ["con", "prn", "aux", "nul", "com1", "lpt9", "com²"]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("cup", "cup"),
        ("red cup", "red cup"),
        ("Größe 43", "Größe 43"),
        ("قهوة", "قهوة"),
        ("👩‍🔬", "👩_🔬"),
        ("a/b\\c", "a_b_c"),
        ('<b>"x"?*|:</b>', "_b__x_______b_"),
        (".", "_"),
        ("..", "__"),
        (".hidden", "_hidden"),
        ("etc.", "etc_"),
        ("nul", "_nul"),
        ("NUL.txt", "_NUL.txt"),
        ("con .tar.gz", "_con .tar.gz"),
        ("console", "console"),
        ("m" * 200, "m" * 100),
        ("é" * 200, "é" * 50),
        ("m" * 99 + " m", "m" * 99),
    ],
)
def test_a_folder_is_called_like_its_class_as_far_as_possible(name, folder):
    assert FolderNames().find(name) == folder


def test_names_that_a_file_system_takes_for_the_same_are_told_apart():
    names = FolderNames(["labels.csv"])
    found = [names.find(name) for name in ("mug", "Mug", "a/b", "a:b", "ﬁn", "fin", "LABELS.CSV")]
    assert found == ["mug", "Mug (2)", "a_b", "a_b (2)", "ﬁn", "fin (2)", "LABELS.CSV (2)"]


def acceptable(name):
    try:
        return normalise_name(name) == name
    except WorkspaceError:
        return False


@pytest.mark.slow
@given(st.lists(st.text(min_size=1, max_size=200).filter(acceptable), unique=True, max_size=20))
def test_any_names_of_classes_give_distinct_portable_folders(labels):
    names = FolderNames()
    folders = [names.find(label) for label in labels]
    assert len({folder.casefold() for folder in folders}) == len(labels)
    for folder in folders:
        assert folder.isprintable()
        assert not set(folder) & set('<>:"/\\|?*')
        assert not folder.startswith((".", " "))
        assert not folder.endswith((".", " "))
        assert 0 < len(folder.encode()) <= 110
        assert folder.partition(".")[0].rstrip().lower() not in DEVICES
