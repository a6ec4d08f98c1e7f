"""The log and its formats."""

from __future__ import annotations

import json
import logging
import sys
import threading
import warnings
from collections.abc import Callable

import pytest

from evergrow.service.http.monitoring import log_to_stderr
from tests.service.conftest import Served


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
    with log_to_stderr(json_lines=True):
        happen()
    (line,) = capsys.readouterr().err.splitlines()
    assert message in json.loads(line)["message"]


def test_logging_is_restored_afterwards() -> None:
    def state() -> tuple[object, ...]:
        loggers = [logging.getLogger(name) for name in (None, "uvicorn", "evergrow.service")]
        hooks = (threading.excepthook, sys.unraisablehook, warnings.showwarning)
        return (*((list(one.handlers), one.level) for one in loggers), *hooks)

    before = state()
    with log_to_stderr(json_lines=False):
        assert state() != before
    assert state() == before


@pytest.mark.parametrize("method", ["GET", "HEAD", "BREW"])
def test_a_request_is_logged_with_its_own_method(
    served: Served, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    caplog.set_level(logging.INFO, "evergrow.service")
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
