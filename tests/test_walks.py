"""The walks of docs/architecture.md pass as many Python files as the page says."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from types import FrameType

import pytest

import evergrow
from tests.conftest import Arrays
from tests.harness.pictures import picture
from tests.service.conftest import folder, served_images, settings  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(evergrow.__file__).parent


class Walk:
    """The files of the package that are passed while the walk is recorded, in all threads.

    Threads that start before the walk exists are not recorded.
    """

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._is_on = False
        threading.setprofile(self._note)

    def record(self, call: Callable[[], object]) -> None:
        self._is_on = True
        sys.setprofile(self._note)
        try:
            call()
        finally:
            sys.setprofile(None)
            self._is_on = False
            threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if self._is_on and event == "call" and code.co_name != "<module>":
            path = Path(code.co_filename)
            if path.is_relative_to(PACKAGE):
                self.files.add(path.relative_to(PACKAGE).as_posix())


def stated(walk: str) -> int:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    name = rf"\*\*[^*]*{re.escape(walk)}[^*]*\*\*"
    (count,) = re.findall(rf"{name} passes through (\d+) Python files", page)
    return int(count)


def test_fit_of_a_forest(digits: Arrays) -> None:
    X, _, y, _ = digits
    # Not the first: some modules are imported when they are needed.
    forest = evergrow.NCMForestClassifier(4, random_state=0).fit(X, y)
    walk = Walk()
    walk.record(lambda: forest.fit(X, y))
    assert len(walk.files) == stated("NCMForestClassifier().fit(X, y)"), sorted(walk.files)


def test_one_row_of_least_squares(digits: Arrays) -> None:
    X, _, y, _ = digits
    classifier = evergrow.RLSClassifier(random_state=0).fit(X, y)
    walk = Walk()
    walk.record(lambda: classifier.partial_fit(X[:1], y[:1]))
    assert len(walk.files) == stated("RLSClassifier.partial_fit"), sorted(walk.files)


def test_a_jpeg_sent_to_the_service(request: pytest.FixtureRequest) -> None:
    walk = Walk()
    served = request.getfixturevalue("served_images")

    def send(seed: int) -> None:
        files = {"image": ("a.jpg", picture(seed=seed), "image/jpeg")}
        answer = served.ask("POST", "/v1/examples", files=files, data={"label": "cat"})
        assert answer.status_code == HTTPStatus.CREATED, answer.text

    send(0)
    walk.record(lambda: send(1))
    # The page counts background tasks too; they need not run before the answer is sent.
    assert 0 < len(walk.files) <= stated("POST /v1/examples"), sorted(walk.files)
