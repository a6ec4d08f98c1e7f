"""The zip format: read by other programs, with sizes that are known in advance."""

from __future__ import annotations

import io
import shutil
import subprocess
import zipfile
import zlib
from datetime import UTC, datetime

import pytest

from evergrow.workspace.archive import zip_stream
from evergrow.workspace.archive.zip_stream import ZipStream

AT = datetime(2026, 11, 18, 12, 34, 56, tzinfo=UTC)


def make(files):
    """A zip file, and the size that was said before it was made."""
    with ZipStream() as size:
        for name, content in files.items():
            size.add(name, len(content), 0, AT)
        n_bytes = size.n_bytes
    with ZipStream() as archive:
        made = b"".join(
            archive.add(name, len(content), zlib.crc32(content), AT) + content
            for name, content in files.items()
        )
        return made + b"".join(archive.end()), n_bytes


FILES = {"a.txt": b"one", "ünder/☕.bin": bytes(range(256)) * 9, "empty": b""}


@pytest.mark.slow
@pytest.mark.parametrize("files", [FILES, {}, {f"{n}": b"x" for n in range(70_000)}])
def test_the_content_is_that_of_the_files_and_the_size_as_said(files):
    made, n_bytes = make(files)
    assert len(made) == n_bytes
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        assert archive.namelist() == list(files)
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in list(files)[:100]} == dict(
            list(files.items())[:100]
        )


def test_files_have_their_time_and_ordinary_permissions():
    with zipfile.ZipFile(io.BytesIO(make(FILES)[0])) as archive:
        info = archive.infolist()[0]
    assert info.date_time == (2026, 11, 18, 12, 34, 56)
    assert info.external_attr >> 16 == 0o100644


@pytest.mark.parametrize("year", [1, 1979, 2108, 9999])
def test_times_that_zip_files_cannot_have_are_the_nearest(year):
    time = datetime(year, 1, 1, tzinfo=UTC)
    with ZipStream() as archive:
        made = archive.add("a", 0, 0, time) + b"".join(archive.end())
    with zipfile.ZipFile(io.BytesIO(made)) as read:
        assert read.infolist()[0].date_time[0] == min(max(year, 1980), 2107)


def test_large_files_and_far_places_use_64_bits(monkeypatch):
    """The limits are lowered: no test writes four gigabytes."""
    monkeypatch.setattr(zip_stream, "_MAX_32", 1000)
    content = b"x" * 1500
    with ZipStream() as size:
        for name in "ab":
            size.add(name, len(content), 0, AT)
        n_bytes = size.n_bytes
    with ZipStream() as archive:
        made = b"".join(
            archive.add(name, len(content), zlib.crc32(content), AT) + content for name in "ab"
        )
        made += b"".join(archive.end())
    assert len(made) == n_bytes
    # The places of 32 bits hold 1000, which readers take for a number: set them to the true limit.
    limit = (1000).to_bytes(4, "little")
    whole = made.replace(limit, b"\xff\xff\xff\xff")
    with zipfile.ZipFile(io.BytesIO(whole)) as read:
        assert [read.read(name) for name in "ab"] == [content, content]


@pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
def test_unzip_accepts_it(tmp_path):
    path = tmp_path / "made.zip"
    path.write_bytes(make(FILES)[0])
    done = subprocess.run(["unzip", "-t", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No errors detected" in done.stdout


def test_a_large_directory_is_not_kept_in_memory():
    with ZipStream() as archive:
        for number in range(20_000):
            archive.add(f"{number:0100d}", 0, 0, AT)
        assert archive._directory._rolled
