"""An exported page in Firefox, opened from disk."""

from __future__ import annotations

import pytest

from tests.harness.firefox import Firefox, find_firefox
from tests.service.page.test_firefox import choose


@pytest.fixture
def firefox(tmp_path):
    program = find_firefox()
    if program is None:
        pytest.skip("firefox-esr is not installed")
    profile = tmp_path / "profile"
    profile.mkdir()
    with Firefox(program, profile) as started:
        yield started


def test_answer_teach_reload_and_undo(firefox, page_file, tmp_path):
    firefox.go(page_file.as_uri())
    firefox.wait_text("#try-title", "Try it")
    choose(firefox, tmp_path / "chosen", "#try-files", "bowl", range(50, 51))
    firefox.wait_text("#try-answer", "This is bowl")
    firefox.click("#views a[href='#teach']")
    choose(firefox, tmp_path / "chosen", "#files", "plant", range(3))
    firefox.wait_text("#tray-title", "3 pictures")
    firefox.type("#label", "plant")
    firefox.wait_text("#take-all", "Teach all 3 as plant")
    firefox.click("#take-all")
    firefox.wait("return evergrow.lessons().length === 3")
    firefox.go(page_file.as_uri())
    firefox.wait_text("#try-title", "Try it")
    choose(firefox, tmp_path / "chosen", "#try-files", "plant", range(50, 51))
    firefox.wait_text("#try-answer", "This is plant")
    firefox.click("#undo")
    firefox.wait_text("#notes", "Undone")
    firefox.wait("return evergrow.lessons().length === 0")
