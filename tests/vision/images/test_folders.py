"""Image folders: every image once, in a fixed order, and nothing from outside."""

from __future__ import annotations

import glob
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from evergrow import BadImageWarning, ImageError
from evergrow.vision import find_images, find_labelled, read_image
from tests.vision.images.drawn import encoded, quarters

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")


def put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(quarters(4)))


def names(folder: Path, where: object) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in find_images(where)]  # type: ignore[arg-type]


def test_a_folder_is_searched_to_its_bottom_in_natural_order(tmp_path: Path) -> None:
    put(tmp_path, "b/img10.jpg", "b/img2.PNG", "a/deep/er/x.webp", "B1.tif", "b/img02.jpg")
    found = names(tmp_path, tmp_path)
    assert found == ["a/deep/er/x.webp", "b/img02.jpg", "b/img2.PNG", "b/img10.jpg", "B1.tif"]


def test_hidden_and_other_files_are_ignored(tmp_path: Path) -> None:
    put(tmp_path, "a.jpg", ".b.jpg", ".hidden/c.jpg", "notes.txt", "jpg")
    assert names(tmp_path, tmp_path) == ["a.jpg"]


def test_patterns_paths_and_lists_of_them_are_found(tmp_path: Path) -> None:
    put(tmp_path, "a/1.jpg", "a/2.png", "b/3.jpg", "odd.dat")
    assert names(tmp_path, f"{tmp_path}/**/*.jpg") == ["a/1.jpg", "b/3.jpg"]
    assert names(tmp_path, f"{tmp_path}/**") == ["a/1.jpg", "a/2.png", "b/3.jpg"]
    assert names(tmp_path, f"{tmp_path}/*") == ["a/1.jpg", "a/2.png", "b/3.jpg"]
    mixed = [tmp_path / "odd.dat", str(tmp_path / "b"), f"{tmp_path}/a/2.*"]
    assert names(tmp_path, mixed) == ["odd.dat", "b/3.jpg", "a/2.png"]


@needs_links
def test_a_pattern_reads_a_folder_once_whatever_links_lead_to_it(tmp_path: Path) -> None:
    put(tmp_path, "deep/er/a.jpg")
    for name in ("first", "second"):
        (tmp_path / "deep" / name).symlink_to(tmp_path / "deep")
    # Each way through two links in each step would be another path.
    for pattern in ("**/*.jpg", "deep/*/*.jpg", "**", "deep/**/er/*"):
        with pytest.warns(BadImageWarning, match=r"first': a link to a folder"):
            assert names(tmp_path, f"{tmp_path}/{pattern}") == ["deep/er/a.jpg"]


@pytest.mark.parametrize(
    "pattern",
    [
        "*",
        "*/",
        "**",
        "**/",
        "**/*",
        "**/*.jpg",
        "*.jpg",
        "?/*.jpg",
        "[ab]/**/*.jpg",
        "**/deep/*",
        "a/**/deep/**/*.jpg",
        "**/.h*/*.jpg",
        ".h*",
        "a**/1.jpg",
        "*/deep",
    ],
)
def test_a_pattern_means_what_glob_means(tmp_path: Path, pattern: str) -> None:
    put(tmp_path, "1.jpg", "a/1.jpg", "a/deep/2.jpg", "b/x/deep/y/3.jpg", ".hid/4.jpg", "b/.5.jpg")
    (tmp_path / "a" / "notes.txt").write_text("")
    matches = [Path(one) for one in glob.glob(f"{tmp_path}/{pattern}", recursive=True)]
    folders = [path for path in matches if path.is_dir()]
    expected = {path for path in matches if path.suffix == ".jpg"}
    expected |= {path for folder in folders for path in find_images(folder)}
    assert set(find_images(f"{tmp_path}/{pattern}")) == expected


def test_an_existing_name_is_not_read_as_a_pattern(tmp_path: Path) -> None:
    put(tmp_path, "[1].jpg", "1.jpg")
    assert names(tmp_path, str(tmp_path / "[1].jpg")) == ["[1].jpg"]


def test_odd_names_work(tmp_path: Path) -> None:
    odd = ["two words.jpg", "café 你好 🐈.jpg"]
    odd += [] if sys.platform == "win32" else ["two\nlines.jpg", "tab\t'quote\".jpg"]
    odd += ["undecodable\udcff.jpg"] if sys.platform == "linux" else []
    put(tmp_path, *(f"class {name}/{name}" for name in odd))
    found = find_images(tmp_path)
    assert sorted(path.name for path in found) == sorted(odd)
    assert all(read_image(path).shape == (4, 4, 3) for path in found)
    labels = find_labelled(tmp_path).labels
    assert len(set(labels)) == len(odd)
    assert all(label.isprintable() for label in labels.tolist())


@needs_links
def test_links_out_of_the_folder_are_followed_unless_told_otherwise(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    put(tmp_path, "inside/a.jpg", "outside/b.jpg")
    (inside / "link.jpg").symlink_to(outside / "b.jpg")
    (inside / "folder").symlink_to(outside)
    assert names(inside, inside) == ["a.jpg", "folder/b.jpg", "link.jpg"]
    with pytest.warns(BadImageWarning, match=r"folder': a link is not.*link\.jpg': a link is not"):
        assert [path.name for path in find_images(inside, follow_links=False)] == ["a.jpg"]


@needs_links
def test_classes_may_be_links_to_folders(tmp_path: Path) -> None:
    put(tmp_path, "store/x1/1.jpg", "store/x2/2.jpg", "photos/dog/3.jpg")
    (tmp_path / "photos" / "cat").symlink_to(tmp_path / "store" / "x1")
    (tmp_path / "photos" / "cow").symlink_to(tmp_path / "store" / "x2")
    found = find_labelled(tmp_path / "photos")
    assert found.labels.tolist() == ["cat", "cow", "dog"]
    assert found.problems == ()
    without = find_labelled(tmp_path / "photos", follow_links=False)
    assert without.labels.tolist() == ["dog"]
    assert len(without.unreadable) == 2


@needs_links
def test_links_to_folders_above_do_not_search_the_disk(tmp_path: Path) -> None:
    put(tmp_path, "photos/a.jpg", "other/b.jpg")
    (tmp_path / "photos" / "up").symlink_to(tmp_path)
    (tmp_path / "photos" / "top").symlink_to("/")
    with pytest.warns(BadImageWarning, match=r"top': a link to a folder above.*up': a link to a"):
        assert names(tmp_path, tmp_path / "photos") == ["photos/a.jpg"]


def test_images_of_formats_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    put(tmp_path, "cat/1.jpg", "cat/2.jp2", "cat/3.JP2", "dog/1.jpg", "dog/4.cr2", "dog/notes.txt")
    with pytest.warns(BadImageWarning, match=r"\.cr2 1, \.jp2 2\), the first .*: images of these"):
        find_images(tmp_path)
    (problem,) = find_labelled(tmp_path).problems
    assert problem.source == f"3 files (.cr2 1, .jp2 2), the first '{tmp_path / 'cat' / '2.jp2'}'"
    with pytest.raises(ValueError, match=r"no images in .* \('.*x\.jp2': images of this"):
        find_images(_only(tmp_path, "x.jp2"))


def _only(folder: Path, name: str) -> Path:
    put(folder, f"only/{name}")
    return folder / "only"


@pytest.mark.parametrize(
    ("folders", "training", "measuring"),
    [
        (["train", "val"], "train", "val"),
        (["Training", "test", "valid"], "Training", "test"),
        (["train", "test"], "train", "test"),
    ],
)
def test_splits_are_recognised(
    tmp_path: Path, folders: list[str], training: str, measuring: str
) -> None:
    put(tmp_path, *(f"{split}/{label}/1.jpg" for split in folders for label in ("cat", "dog")))
    for split, name in (("train", training), ("test", measuring)):
        found = find_labelled(tmp_path, split=split)  # type: ignore[arg-type]
        assert found.split == tmp_path / name
        assert found.labels.tolist() == ["cat", "dog"]
        assert all(path.is_relative_to(tmp_path / name) for path in found.paths)
    assert set(find_labelled(tmp_path, split=None).labels) == set(folders)


def test_stray_images_and_other_folders_do_not_hide_splits(tmp_path: Path) -> None:
    put(tmp_path, "train/cat/1.jpg", "train/dog/1.jpg", "val/cat/1.jpg", "train/stray.jpg", "x.jpg")
    put(tmp_path, "labels/notes.txt", "__MACOSX/train/notes.txt")
    found = find_labelled(tmp_path)
    assert found.split == tmp_path / "train"
    assert found.labels.tolist() == ["cat", "dog"]
    assert [one.reason for one in found.problems] == ["it is not in a class folder"]


@needs_links
def test_splits_that_are_links_are_not_followed_if_links_are_not(tmp_path: Path) -> None:
    put(
        tmp_path, "store/train/cat/1.jpg", "store/val/cat/1.jpg", "photos/a/1.jpg", "photos/b/1.jpg"
    )
    for name in ("train", "val"):
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / name).symlink_to(tmp_path / "store" / name)
    assert find_labelled(tmp_path / "data").labels.tolist() == ["cat"]
    with pytest.raises(ImageError, match="a link is not followed"):
        find_labelled(tmp_path / "data", follow_links=False)


def test_classes_called_like_splits_are_classes(tmp_path: Path) -> None:
    put(tmp_path, "train/1.jpg", "test/1.jpg")
    assert find_labelled(tmp_path).split is None
    put(tmp_path, "bus/1.jpg")
    assert find_labelled(tmp_path).labels.tolist() == ["bus", "test", "train"]


def test_folders_that_are_probably_not_classes_are_doubted(tmp_path: Path) -> None:
    put(tmp_path, "data/cat/1.jpg", "data/dog/1.jpg")
    doubt = str(find_labelled(tmp_path).doubt_about_depth)
    assert doubt.endswith("would be data, and the folders in them are cat, dog")
    assert find_labelled(tmp_path / "data").doubt_about_depth is None
    put(tmp_path, "one/cat/1.jpg")
    assert "one class only, cat" in str(find_labelled(tmp_path / "one").doubt_about_number)
    put(tmp_path, "mixed/cat/1.jpg", "mixed/dog/young/1.jpg")
    assert find_labelled(tmp_path / "mixed").doubt_about_depth is None
    assert find_labelled(tmp_path / "mixed").doubt_about_number is None


@needs_links
def test_links_in_circles_and_to_nothing_are_reported(tmp_path: Path) -> None:
    put(tmp_path, "a.jpg")
    (tmp_path / "up").symlink_to(tmp_path)
    (tmp_path / "self.jpg").symlink_to(tmp_path / "self.jpg")
    (tmp_path / "gone.jpg").symlink_to(tmp_path / "nothing")
    with pytest.warns(BadImageWarning, match=r"gone.*nothing.*self.*circles.*up.*folder above"):
        assert names(tmp_path, tmp_path) == ["a.jpg"]


@needs_links
def test_a_pipe_named_like_an_image_is_reported(tmp_path: Path) -> None:
    put(tmp_path, "a.jpg")
    os.mkfifo(tmp_path / "b.jpg")
    with pytest.warns(BadImageWarning, match=r"b\.jpg.*not a regular file"):
        find_images(tmp_path)


def test_places_without_images_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no images in .* end in \.avif"):
        find_images(tmp_path)
    for missing in (tmp_path / "no", f"{tmp_path}/*.jpg"):
        with pytest.raises(FileNotFoundError, match="no file or folder matches"):
            find_images(missing)
    with pytest.raises(TypeError, match="must be a path, got int"):
        find_images([1])  # type: ignore[list-item]


def test_classes_are_the_names_of_folders(tmp_path: Path) -> None:
    put(tmp_path, "dog/1.jpg", "cat/deep/2.jpg", "cat/1.jpg")
    found = find_labelled(tmp_path)
    assert found.labels.tolist() == ["cat", "cat", "dog"]
    assert [path.name for path in found.paths] == ["1.jpg", "2.jpg", "1.jpg"]
    assert found.problems == ()


def test_no_two_names_of_folders_become_one_class(tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("names of folders hold no line breaks on Windows")
    put(tmp_path, "a\nb/1.jpg", r"a\nb/1.jpg", r"a\\nb/1.jpg")
    assert len(set(find_labelled(tmp_path).labels.tolist())) == 3


def test_a_folder_that_cannot_be_opened_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "dog/1.jpg", "dog/locked/2.jpg")
    scandir = os.scandir

    def refuse(folder: Any) -> Any:
        if Path(folder).name == "locked":
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    (problem,) = find_labelled(tmp_path).unreadable
    assert problem.source.endswith("locked'")
    assert problem.reason == "permission denied"


@needs_links
def test_a_folder_of_nothing_but_unreadable_images_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "dog").mkdir()
    (tmp_path / "dog" / "gone.jpg").symlink_to("nothing")
    for find in (find_images, find_labelled):
        with pytest.raises(ImageError, match=r"gone\.jpg': a link to nothing"):
            find(tmp_path)


def test_what_belongs_to_no_class_is_reported(tmp_path: Path) -> None:
    put(tmp_path, "dog/1.jpg", "stray.jpg")
    (tmp_path / "empty").mkdir()
    reasons = [str(problem) for problem in find_labelled(tmp_path).problems]
    assert len(reasons) == 2
    assert "stray.jpg': it is not in a class folder" in reasons[0]
    assert "empty': the folder has no images" in reasons[1]


def test_a_folder_without_classes_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="each class into a folder of their own"):
        find_labelled(tmp_path)
    put(tmp_path, "a.jpg")
    with pytest.raises(ValueError, match=f"parent folder '{re.escape(str(tmp_path.parent))}', or"):
        find_labelled(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"'\.' has no subfolders: give its parent folder '\.\.'"):
        find_labelled(".")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"no folder in .* has images"):
        find_labelled(tmp_path)


def test_a_missing_folder_and_a_file_are_errors(tmp_path: Path) -> None:
    put(tmp_path, "a.jpg")
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        find_labelled(tmp_path / "no")
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        find_labelled(tmp_path / "a.jpg")
