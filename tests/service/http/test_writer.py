"""The writer thread, and the background thread for follow-up work."""

from __future__ import annotations

import threading
from http import HTTPStatus
from typing import Any

import numpy as np
import pytest

from evergrow.service.http.responses import ProblemError
from evergrow.service.http.writer import BackgroundThread, WriterThread
from evergrow.workspace import Change, NewExample, Workspace
from evergrow.workspace import Request as Identity
from tests.service.conftest import A, Served


class Pauses(threading.Event):
    """Stops the thread after one pause, and records its length."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []
        self.paused = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        self.paused.set()
        return True


@pytest.mark.parametrize(("taken", "pause"), [(0.0, 0.25), (0.01, 0.25), (2.0, 18.0)])
def test_background_work_uses_at_most_a_tenth_of_the_time(taken: float, pause: float) -> None:
    now = [0.0]

    def work() -> None:
        now[0] += taken

    background = BackgroundThread([work], clock=lambda: now[0])
    background._stopping = pauses = Pauses()
    with background:
        background.notify()
        assert pauses.paused.wait(10)
    assert pauses.seconds == [pytest.approx(pause)]


def test_a_failing_task_does_not_stop_the_next_one(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    def fail() -> None:
        raise ValueError("broken")

    with BackgroundThread([fail, done.set]) as background:
        background.notify()
        assert done.wait(10)
    assert "a background task failed" in caplog.text


def test_background_work_ends_before_the_last_snapshot(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = []

    def save_snapshot(self: Workspace, **_: Any) -> None:
        running.append(any(thread.name == "background" for thread in threading.enumerate()))

    monkeypatch.setattr(Workspace, "save_snapshot", save_snapshot)
    served.service.close()
    assert running[-1] is False


class SlowWorkspace:
    """Blocks the writer at its first example, so that the others are queued."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.go = threading.Event()

    def teach(self, examples: list[NewExample]) -> list[Any]:
        self.go.wait()
        labels = [example.label for example in examples]
        self.calls.append(labels)
        if "wrong" in labels:
            raise ValueError("wrong")
        return labels


def new_example(label: str, key: str | None = None) -> NewExample:
    return NewExample(np.zeros(4, np.float32), label, request=Identity("teacher", key))


def test_queued_examples_are_written_together_and_fail_alone() -> None:
    space = SlowWorkspace()
    with WriterThread(space, max_queue=9, on_written=lambda n: None) as writer:  # type: ignore[arg-type]
        first = writer.teach(new_example("first"))
        rest = [writer.teach(new_example(label)) for label in ("a", "wrong", "b")]
        space.go.set()
        assert first.result() == "first"
        assert [rest[0].result(), rest[2].result()] == ["a", "b"]
        with pytest.raises(ValueError, match="wrong"):
            rest[1].result()
    assert space.calls[-3:] == [["a"], ["wrong"], ["b"]]


def test_the_same_key_twice_is_not_written_together() -> None:
    space = SlowWorkspace()
    with WriterThread(space, max_queue=9, on_written=lambda n: None) as writer:  # type: ignore[arg-type]
        futures = [writer.teach(new_example(label, "k")) for label in ("a", "b", "c")]
        space.go.set()
        assert [future.result() for future in futures] == ["a", "b", "c"]
    assert space.calls == [["a"], ["b"], ["c"]]


def test_a_full_queue_refuses_changes_at_once() -> None:
    space = SlowWorkspace()
    with WriterThread(space, max_queue=1, on_written=lambda n: None) as writer:  # type: ignore[arg-type]
        with pytest.raises(ProblemError, match="queued"):  # noqa: PT012
            for _ in range(3):
                writer.teach(new_example("a"))
        space.go.set()


def test_queued_changes_are_made_at_shutdown() -> None:
    space = SlowWorkspace()
    with WriterThread(space, max_queue=9, on_written=lambda n: None) as writer:  # type: ignore[arg-type]
        taught = writer.teach(new_example("a"))
        change = writer.change(lambda: Change(2, "undo", "done", 1))
        space.go.set()
    assert taught.result() == "a"
    assert change.result().summary == "done"
    with pytest.raises(ProblemError, match="stopping"):
        writer.teach(new_example("b"))


def test_a_signal_may_interrupt_the_thread_that_queues_a_change() -> None:
    class Interrupted(WriterThread):
        def check_open(self) -> None:
            super().check_open()
            self.refuse()

    space = SlowWorkspace()
    space.go.set()
    taught = []
    writer = Interrupted(space, max_queue=9, on_written=lambda n: None)  # type: ignore[arg-type]
    writer.__enter__()
    thread = threading.Thread(
        target=lambda: taught.append(writer.teach(new_example("a"))), daemon=True
    )
    thread.start()
    thread.join(5)
    # Checked before finish(), which would wait for the same lock.
    assert not thread.is_alive()
    writer.finish()
    assert taught[0].result() == "a"


def test_a_cancelled_example_does_not_end_the_writer() -> None:
    space = SlowWorkspace()
    with WriterThread(space, max_queue=9, on_written=lambda n: None) as writer:  # type: ignore[arg-type]
        first = writer.teach(new_example("first"))
        rest = [writer.teach(new_example(label)) for label in ("a", "b", "c")]
        assert rest[1].cancel()
        space.go.set()
        assert [first.result(), rest[0].result(), rest[2].result()] == ["first", "a", "c"]
        assert writer.teach(new_example("d")).result() == "d"
    assert ["b"] not in space.calls


def test_a_service_whose_writer_has_ended_is_not_ready(served: Served) -> None:
    served.service.writer._queue.put(None)
    served.service.writer._thread.join()
    answer = served.get("/readyz")
    assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert "restart the service" in answer.json()["detail"]
    assert served.teach_one("mug", A).status_code == HTTPStatus.SERVICE_UNAVAILABLE
