"""Images in zip files: those of others may be hostile."""

from __future__ import annotations

import stat
import zipfile

import numpy as np
import pytest

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.images import find_labelled
from evergrow.vision.images.zip_files import unpack_images


def make(path, files, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Where files are unpacked; nothing may stay there."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    yield tmp_path / "temporary"
    assert list((tmp_path / "temporary").iterdir()) == []


def test_class_folders_are_found_and_removed_afterwards(tmp_path):
    path = make(tmp_path / "a.zip", {"cat/1.jpg": b"1", "dog/2.PNG": b"2", "notes.txt": b"no"})
    with unpack_images(path) as folder:
        found = find_labelled(folder)
        assert found.labels.tolist() == ["cat", "dog"]
        assert [one.read_bytes() for one in found.paths] == [b"1", b"2"]
        assert sorted(one.name for one in folder.iterdir()) == ["cat", "dog"]
    assert not folder.exists()


def test_one_folder_around_the_classes_is_entered(tmp_path):
    path = make(tmp_path / "a.zip", {"photos/all/cat/1.jpg": b"", "photos/all/dog/1.jpg": b""})
    with unpack_images(path) as folder:
        assert find_labelled(folder).labels.tolist() == ["cat", "dog"]


def test_what_macs_and_hidden_folders_add_is_left_out(tmp_path):
    names = ["cat/1.jpg", "__MACOSX/cat/._1.jpg", ".git/2.jpg", "cat/.3.jpg", "dog/4.jpg"]
    with unpack_images(make(tmp_path / "a.zip", dict.fromkeys(names, b""))) as folder:
        assert find_labelled(folder).labels.tolist() == ["cat", "dog"]


@pytest.mark.parametrize(
    "name",
    [
        "../evil.jpg",
        "/etc/evil.jpg",
        "cat/../../evil.jpg",
        "cat//evil.jpg",
        "C:evil.jpg",
        "cat\\..\\evil.jpg",
        "cat/\x1b[2J.jpg",
        f"{'x' * 300}/evil.jpg",
        f"{'x/' * 2000}evil.jpg",
    ],
)
def test_names_that_leave_the_folder_are_refused(tmp_path, name):
    path = make(tmp_path / "a.zip", {"cat/1.jpg": b"", name: b"evil"})
    with pytest.raises(InvalidInputError, match="cannot be unpacked"), unpack_images(path):
        pass
    assert not list(tmp_path.rglob("*evil*"))


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path = make(tmp_path / "a.zip", {"cat/1.png": bytes(50 << 20)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(InvalidInputError, match="would become 52 MB"), unpack_images(path):
        pass


def test_a_link_is_refused(tmp_path):
    link = zipfile.ZipInfo("cat/1.jpg")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(InvalidInputError, match="is a link"), unpack_images(tmp_path / "a.zip"):
        pass


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no zip file" * 100])
def test_what_is_not_a_zip_file_is_an_error(tmp_path, content):
    (tmp_path / "a.zip").write_bytes(content)
    with (
        pytest.raises(InvalidInputError, match="cannot be unpacked"),
        unpack_images(tmp_path / "a.zip"),
    ):
        pass


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("cat/1.jpg", b"1")
        archive.writestr("cat/1.jpg", b"2")
    with pytest.raises(InvalidInputError, match="twice"), unpack_images(tmp_path / "a.zip"):
        pass


@pytest.mark.parametrize("names", [("cat/1.jpg", "cat/1.jpg/2.jpg"), ("a.jpg", "a.jpg/b/c.jpg")])
def test_a_file_in_place_of_a_folder_is_refused(tmp_path, names):
    path = make(tmp_path / "a.zip", dict.fromkeys(names, b""))
    with pytest.raises(InvalidInputError, match="in place of its folder"), unpack_images(path):
        pass


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_of_compression_are_refused(tmp_path, method):
    path = make(tmp_path / "a.zip", {"cat/1.jpg": b"1"}, method)
    with pytest.raises(InvalidInputError, match="another method"), unpack_images(path):
        pass


def test_a_zip_file_without_images_is_named(tmp_path):
    path = make(tmp_path / "a.zip", {"cat/notes.txt": b"1"})
    with pytest.raises(InvalidInputError, match=r"a\.zip.*no images"), unpack_images(path):
        pass


def test_damaged_zip_files_are_refused_with_one_kind_of_error(tmp_path):
    files = {"cat/é.jpg": b"1" * 50, "labels.csv": b"no table"}
    content = make(tmp_path / "a.zip", files, zipfile.ZIP_DEFLATED).read_bytes()
    random = np.random.default_rng(0)
    n_refused = 0
    for _ in range(500):
        damaged = bytearray(content)
        for place in random.integers(len(content), size=3):
            damaged[place] = random.integers(256)
        (tmp_path / "a.zip").write_bytes(damaged)
        try:
            with unpack_images(tmp_path / "a.zip"):
                pass
        except InvalidInputError:
            n_refused += 1
    assert n_refused > 100
