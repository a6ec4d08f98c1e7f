"""What follows teaching is done beside, and takes its share of the time."""

from __future__ import annotations

import threading

import pytest

from evergrow.service.http.background import Background


class Pauses(threading.Event):
    """Says to stop after one pause, and how long that was to be."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []
        self.paused = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        self.paused.set()
        return True


@pytest.mark.parametrize(("taken", "pause"), [(0.0, 0.25), (0.01, 0.25), (2.0, 18.0)])
def test_work_takes_at_most_a_tenth_of_the_time(taken: float, pause: float) -> None:
    now = [0.0]

    def work() -> None:
        now[0] += taken

    background = Background([work], clock=lambda: now[0])
    background._stopping = pauses = Pauses()
    with background:
        background.tell()
        assert pauses.paused.wait(10)
    assert pauses.seconds == [pytest.approx(pause)]


def test_work_that_fails_does_not_stop_what_follows(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    def fail() -> None:
        raise ValueError("broken")

    with Background([fail, done.set]) as background:
        background.tell()
        assert done.wait(10)
    assert "work in the background failed" in caplog.text
