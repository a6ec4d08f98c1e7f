"""The main journey in Firefox: come in, teach with files and the camera, try, undo."""

from __future__ import annotations

import time
import zipfile

import pytest

from tests.harness.firefox import Firefox, find_firefox
from tests.service.browsing import files


@pytest.fixture
def firefox(tmp_path):
    program = find_firefox()
    if program is None:
        pytest.skip("firefox-esr is not installed")
    profile = tmp_path / "profile"
    profile.mkdir()
    with Firefox(program, profile) as started:
        yield started


def choose(firefox, folder, selector, thing, seeds):
    folder.mkdir(exist_ok=True)
    paths = []
    for one in files(thing, seeds):
        path = folder / one["name"]
        path.write_bytes(one["buffer"])
        paths.append(str(path))
    firefox.type(selector, "\n".join(paths))


def expect(served, counts):
    """Wait until the service has these examples: the page sends them one after the other."""
    end = time.monotonic() + 20
    while served.counts() != counts:
        assert time.monotonic() < end, served.counts()
        time.sleep(0.1)


def test_teach_try_and_undo(firefox, served, tmp_path):
    served.forget_all()
    firefox.go(f"{served.url}#token={served.teaching}")
    firefox.wait_text("#teach-title", "Teach")
    assert "token" not in firefox.run("return location.href")
    for thing in ("bowl", "plant"):
        choose(firefox, tmp_path / "chosen", "#files", thing, range(3))
        firefox.wait_text("#tray-title", "3 pictures")
        firefox.type("#label", thing)
        firefox.wait_text("#take-all", f"Teach all 3 as {thing}")
        firefox.click("#take-all")
        firefox.wait_text("#undo", f"3 pictures of {thing}")
    firefox.click("#views a[href='#try']")
    choose(firefox, tmp_path / "chosen", "#try-files", "bowl", range(10, 11))
    firefox.wait_text("#try-answer", "bowl")
    expect(served, {"bowl": 3, "plant": 3})
    firefox.click("#undo")
    firefox.wait_text("#notes", "Undone")
    expect(served, {"bowl": 3})


def test_the_camera_takes_pictures(firefox, served):
    served.forget_all()
    firefox.go(f"{served.url}#token={served.teaching}")
    firefox.click("#camera-start")
    firefox.wait("return document.getElementById('video').videoWidth > 0")
    firefox.type("#label", "screen")
    firefox.wait_text("#take", "screen")
    firefox.click("#take")
    firefox.wait_text("#progress", "1 p")
    expect(served, {"screen": 1})


def test_pictures_are_saved_by_a_link(firefox, served, tmp_path):
    served.forget_all()
    firefox.go(f"{served.url}#token={served.teaching}")
    firefox.wait_text("#teach-title", "Teach")
    choose(firefox, tmp_path / "chosen", "#files", "bowl", range(3))
    firefox.wait_text("#tray-title", "3 pictures")
    firefox.type("#label", "left/right")
    firefox.click("#take-all")
    expect(served, {"left/right": 3})
    firefox.click("#views a[href='#classes']")
    firefox.wait_text("#classes-sum", "3 pictures")
    firefox.click("#download")
    firefox.wait_text("dialog", "Pictures")
    firefox.click("dialog li:nth-child(4) button")
    firefox.wait_text("dialog", "Your browser saves workspace-pictures.zip")
    saved = firefox.downloads / "workspace-pictures.zip"
    end = time.monotonic() + 20
    # Firefox writes to another file next to an empty one.
    while not (saved.exists() and zipfile.is_zipfile(saved)):
        assert time.monotonic() < end, list(firefox.downloads.glob("*"))
        time.sleep(0.05)
    with zipfile.ZipFile(saved) as archive:
        assert archive.testzip() is None
        assert sum(name.startswith("left_right/") for name in archive.namelist()) == 3
