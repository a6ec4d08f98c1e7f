"""What follows teaching is done beside, and takes its share of the time."""

from __future__ import annotations

import threading

import pytest

from evergrow.service.http.writer import BackgroundThread


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

    background = BackgroundThread([work], clock=lambda: now[0])
    background._stopping = pauses = Pauses()
    with background:
        background.notify()
        assert pauses.paused.wait(10)
    assert pauses.seconds == [pytest.approx(pause)]


def test_work_that_fails_does_not_stop_what_follows(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    def fail() -> None:
        raise ValueError("broken")

    with BackgroundThread([fail, done.set]) as background:
        background.notify()
        assert done.wait(10)
    assert "a background task failed" in caplog.text
