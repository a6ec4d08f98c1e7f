"""The writer thread, the background thread, and what the service logs."""

from __future__ import annotations

import json
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import numpy as np
import pytest

from evergrow.service.http.monitoring import BurstLog, log_to_stderr
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


def raise_in_a_thread() -> None:
    def fail() -> None:
        raise KeyError("of a thread")

    thread = threading.Thread(target=fail, name="one that fails")
    thread.start()
    thread.join()


def raise_in_a_destructor() -> None:
    class Failing:
        def __del__(self) -> None:
            raise KeyError("on the way out")

    Failing()


def warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("careful", UserWarning, stacklevel=1)


@pytest.mark.parametrize(
    ("happen", "message"),
    [
        (raise_in_a_thread, "one that fails"),
        (raise_in_a_destructor, "__del__"),
        (warn, "careful"),
        (lambda: logging.getLogger("asyncio").error("of the loop\nin two lines"), "two lines"),
        (lambda: logging.getLogger("uvicorn.error").info("of the server"), "of the server"),
    ],
    ids=["thread", "ignored", "warning", "loop", "server"],
)
def test_every_event_is_one_json_line(
    happen: Callable[[], None], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with log_to_stderr(json_lines=True, requests=True):
        happen()
    (line,) = capsys.readouterr().err.splitlines()
    assert message in json.loads(line)["message"]


def test_logging_is_restored_afterwards() -> None:
    def state() -> tuple[object, ...]:
        loggers = [logging.getLogger(name) for name in (None, "uvicorn", "evergrow.service")]
        hooks = (threading.excepthook, sys.unraisablehook, warnings.showwarning)
        return (*((list(one.handlers), one.level) for one in loggers), *hooks)

    before = state()
    with log_to_stderr(json_lines=False, requests=True):
        assert state() != before
    assert state() == before


@pytest.mark.parametrize("method", ["GET", "HEAD", "BREW"])
def test_a_request_is_logged_with_its_own_method(
    served: Served, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    caplog.set_level(logging.DEBUG, "evergrow.service")
    served.ask(method, "/v1/classes")
    (facts,) = [record.facts for record in caplog.records if hasattr(record, "facts")]
    assert (facts["method"], facts["actor"]) == (method, "teacher")


def test_unknown_methods_do_not_grow_the_metrics(served: Served) -> None:
    for number in range(3):
        served.ask(f"BREW{number}", "/healthz", token=None)
    served.ask("POST", "/healthz", token=None)
    served.ask("HEAD", "/healthz", token=None)
    text = served.get("/metrics").text
    counted = {line for line in text.splitlines() if line.startswith("evergrow_requests_total{")}
    assert counted == {
        'evergrow_requests_total{method="HEAD",route="/healthz",status="200"} 1.0',
        'evergrow_requests_total{method="other",route="/healthz",status="405"} 4.0',
    }


def test_a_refused_scope_is_logged_with_its_token_and_reason(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "evergrow.service")
    served.post("/v1/undo", {}, token="read")
    (facts,) = [record.facts for record in caplog.records if hasattr(record, "facts")]
    assert (facts["status"], facts["actor"]) == (403, "reader")
    assert "lacks the scope 'teach'" in facts["reason"]


def test_many_refused_tokens_have_one_line(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "evergrow.service")
    for _ in range(5):
        served.get("/v1/classes", token="wrong")
    (facts,) = [record.facts for record in caplog.records if hasattr(record, "facts")]
    assert (facts["status"], facts["reason"]) == (401, "the token is not valid")


@pytest.mark.parametrize(
    ("method", "path", "headers", "token"),
    [
        ("GET", "/", {}, None),
        ("GET", "/", {"Host": "example.org"}, None),
        ("GET", "/", {"Content-Length": "x"}, None),
        ("GET", "/", {"Content-Length": "99999999"}, None),
        ("POST", "/", {}, None),
        ("GET", "/static/nothing", {}, None),
        ("GET", "/v1/nothing", {}, "read"),
        ("BREW", "/v1/classes", {}, "teach"),
        ("GET", "/v1/classes?limit=x", {}, "read"),
        ("POST", "/v1/undo", {}, "read"),
    ],
)
def test_requests_that_cannot_fill_the_log(
    served: Served,
    caplog: pytest.LogCaptureFixture,
    method: str,
    path: str,
    headers: dict[str, str],
    token: str | None,
) -> None:
    caplog.set_level(logging.DEBUG, "evergrow.service")
    for _ in range(5):
        served.ask(method, path, token=token, headers=headers)
    assert len([record for record in caplog.records if hasattr(record, "facts")]) == 1


def test_requests_with_a_token_have_a_line_each(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "evergrow.service")
    for _ in range(5):
        served.get("/v1/classes")
    assert len([record for record in caplog.records if hasattr(record, "facts")]) == 5


def test_requests_that_succeed_are_not_logged_by_default(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "evergrow.service")
    served.get("/v1/classes")
    served.get("/", token=None)
    assert not [record for record in caplog.records if hasattr(record, "facts")]
    served.get("/v1/nothing")
    assert [record.facts["status"] for record in caplog.records] == [404]


def test_long_texts_of_clients_are_cut(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "evergrow.service")
    served.ask("M" * 5000, f"/v1/{'p' * 5000}")
    (facts,) = [record.facts for record in caplog.records if hasattr(record, "facts")]
    assert facts["path"] == f"/v1/{'p' * 196}…"
    assert len(facts["method"]) < 30
    assert len(json.dumps(facts)) < 1500


def test_warnings_of_the_server_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with log_to_stderr(json_lines=False, requests=True):
        server = logging.getLogger("uvicorn.error")
        for _ in range(100):
            server.warning("Invalid HTTP request received.")
        server.error("another")
        server.error("another")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "Invalid HTTP request" in lines[0]


def test_a_burst_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = 0.0
    bursts = BurstLog(logging.getLogger("test"), clock=lambda: now)
    for second in range(62):
        now = float(second)
        bursts.add("a", "refused", {"client": "a"})
    first, total, second_burst = [(one.getMessage(), one.facts) for one in caplog.records]
    assert first == second_burst == ("refused", {"client": "a"})
    assert total == ("refused, repeatedly", {"client": "a", "more": 59, "seconds": 60})


def test_bursts_of_many_clients_share_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bursts = BurstLog(logging.getLogger("test"), clock=lambda: 0.0)
    for number in range(5000):
        bursts.add(number, "refused", {"client": str(number), "status": 401})
    assert len(caplog.records) == 1001
    assert caplog.records[-1].facts == {"client": "many", "status": 401}
