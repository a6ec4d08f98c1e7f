"""Atomic writes: links, permissions and full disks."""

from __future__ import annotations

import errno
import os
import stat
import sys

import pytest

from evergrow import DiskFullError
from evergrow.foundation.atomic import atomic_write, name_full_disk

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_folder_that_takes_no_files_is_an_error_that_names_the_target(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", "temporary")

    monkeypatch.setattr("builtins.open", refuse)
    refused = pytest.raises(PermissionError, match=r"cannot write '.*model': permission to create")
    with refused, atomic_write(tmp_path / "model"):
        pass


@posix
def test_a_private_file_replaces_a_link_and_is_for_its_owner_only(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with atomic_write(tmp_path / "link", private=True) as file:
        assert stat.S_IMODE(os.stat(file.name).st_mode) == 0o600
        file.write(b"new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "link").stat().st_mode) == 0o600
    assert (tmp_path / "file").read_bytes() == b"old"


@posix
def test_a_private_file_is_private_even_if_the_one_before_was_not(tmp_path):
    (tmp_path / "file").touch(0o644)
    with atomic_write(tmp_path / "file", private=True) as file:
        file.write(b"new")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path, number):
    (tmp_path / "file").write_bytes(b"old")

    def write():
        with atomic_write(tmp_path / "file"):
            raise OSError(number, "no space")

    with pytest.raises(DiskFullError) as caught:
        write()
    assert caught.value.filename == str(tmp_path / "file")
    assert os.path.ismount(caught.value.disk)
    assert str(tmp_path / "file") in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_the_innermost_file_is_the_one_that_is_named(tmp_path):
    with (
        pytest.raises(DiskFullError, match="inner"),
        name_full_disk(tmp_path / "outer"),
        name_full_disk(tmp_path / "inner"),
    ):
        raise OSError(errno.ENOSPC, "no space")


def test_other_errors_stay_as_they_are(tmp_path):
    with pytest.raises(OSError, match="broken") as caught, name_full_disk(tmp_path):
        raise OSError(errno.EIO, "broken")
    assert not isinstance(caught.value, DiskFullError)
