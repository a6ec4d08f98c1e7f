"""Other processes and threads than the one that opened a block."""

from __future__ import annotations

import os
import threading

import pytest

import evergrow
from evergrow.distributed import connection
from evergrow.foundation.engine import Job, current_engine
from evergrow.foundation.errors import ClusterError
from tests.distributed import work
from tests.distributed.conftest import enter
from tests.harness.process import end_if_stuck

_needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
_quiet = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def _in_child(action):
    """What ``action`` raises in a process forked now."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        text = "nothing"
        end_if_stuck()
        try:
            action()
        except BaseException as error:  # noqa: BLE001
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


@_needs_fork
@_quiet
@pytest.mark.parametrize(
    "action",
    [
        lambda engine: engine.share(1),
        lambda engine: list(engine.run(Job(work.shifted, range(2), [1], "adding"))),
        lambda engine: engine.capacity.n_workers,
        lambda engine: enter("auto"),
    ],
    ids=["share", "run", "n_workers", "a block"],
)
def test_work_is_refused_in_a_process_that_was_forked_in_a_block(engine, action):
    found = _in_child(lambda: action(engine))
    assert found.startswith("ClusterError: this process was forked inside evergrow.cluster")


@_needs_fork
@_quiet
def test_a_fork_that_leaves_the_block_does_not_disturb_the_parent(engine):
    results = engine.run(Job(work.shifted, range(6), [1], "adding"))
    next(results)

    def leave():
        # References to results are not dropped here: Ray may wait for itself in a fork.
        engine.run_on_every_node(work.shifted, 1)
        engine.close()
        connection._connection.leave()

    assert _in_child(leave) == "nothing"
    assert len(list(results)) == 5
    assert len(list(engine.run(Job(work.shifted, range(4), [1], "adding")))) == 4


@_needs_fork
@_quiet
def test_a_fork_may_work_on_its_own(engine, rows):
    def alone():
        with evergrow.cluster(None):
            evergrow.NCMClassifier().fit(*rows)

    assert _in_child(alone) == "nothing"


class _OneRay:
    """As much of Ray as connecting needs."""

    def __init__(self):
        self.n_starts, self.is_up = 0, False

    def is_initialized(self):
        return self.is_up

    def start(self, *args):
        self.n_starts += 1
        self.is_up = True
        self.starter = threading.current_thread()

    def shutdown(self):
        self.is_up = False


def test_the_last_block_of_a_process_leaves_ray(monkeypatch):
    ray = _OneRay()
    monkeypatch.setattr(connection, "_connection", connection._Connection())
    monkeypatch.setattr(connection, "_import_ray", lambda: ray)
    monkeypatch.setattr(connection, "_connect", ray.start)
    monkeypatch.setattr(connection, "_check_cluster", lambda *args: None)
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
    options = {"n_processors": 1, "threads_per_worker": 1, "connect_timeout": 1.0}
    is_up, may_leave, found = threading.Event(), threading.Event(), []

    def first():
        with connection.connected("local", **options):
            is_up.set()
            may_leave.wait()
        found.append((ray.is_up, "RAY_USAGE_STATS_ENABLED" in os.environ))

    thread = threading.Thread(target=first)
    thread.start()
    is_up.wait()
    with connection.connected("auto", **options):
        may_leave.set()
        thread.join()
        # What it has started ends with it.
        assert ray.starter.is_alive()
    assert not ray.starter.is_alive()
    found.append((ray.is_up, "RAY_USAGE_STATS_ENABLED" in os.environ))
    assert found == [(True, True), (False, False)]
    assert ray.n_starts == 1


def test_ray_is_never_started_by_work(engine, monkeypatch):
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    for action in (
        lambda: engine.share(1),
        lambda: list(engine.run(Job(work.shifted, range(2), [1], "adding"))),
        lambda: engine.capacity.n_workers,
    ):
        with pytest.raises(ClusterError, match="Ray was shut down inside the block"):
            action()


def test_a_block_after_one_that_failed_is_counted_right(two_nodes):
    for address in ("local", "auto"):
        try:
            with evergrow.cluster(address):
                assert current_engine() is not None
        except ClusterError:
            assert address == "local"
    assert connection._connection._n_blocks == 0
