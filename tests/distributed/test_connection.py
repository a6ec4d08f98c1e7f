"""Clusters that cannot be used, and forks and threads of the process that opened a block."""

from __future__ import annotations

import os
import socket
import sys
import threading
from types import SimpleNamespace

import pytest

import evergrow
from evergrow.distributed import connection
from evergrow.distributed.worker import local_versions
from evergrow.foundation.engine import Job, current_engine
from evergrow.foundation.errors import ClusterError
from tests.distributed import work
from tests.distributed.conftest import enter
from tests.harness.process import end_if_stuck

_CONNECT = """
import evergrow, ray, time
for address in {addresses!r}:
    start = time.monotonic()
    try:
        with evergrow.cluster(address, connect_timeout=1):
            pass
    except evergrow.ClusterError as error:
        print(error)
    print(time.monotonic() - start < 20)
"""


@pytest.mark.slow
def test_an_address_where_no_ray_answers_is_named_in_time(needs_ray, run_script):
    with socket.socket() as deaf, socket.socket() as another:
        for service in (deaf, another):
            service.bind(("127.0.0.1", 0))
        # Something listens there, but does not speak as Ray does.
        another.listen()
        first, second = (f"127.0.0.1:{one.getsockname()[1]}" for one in (deaf, another))
        addresses = [first, f"ray://{first}", second]
        done = run_script(_CONNECT.format(addresses=addresses))
    lines = done.stdout.splitlines()
    assert len(lines) == 6, done.stderr
    for address, line in zip(addresses, lines[::2], strict=True):
        assert f"no Ray cluster answers at {address} within 1 second:" in line
    assert lines[1::2] == ["True"] * 3


@pytest.mark.parametrize(
    "address", ["", "nonsense", "host:", "host:99999", "http://a:1", 7, b"a:1"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ValueError, match="address must be None, 'auto', 'local', 'host:port' or"):
        enter(address)


@pytest.mark.parametrize(
    "options",
    [
        {"n_workers": 0},
        {"threads_per_worker": 1.5},
        {"connect_timeout": 0},
        {"retries": -1},
        {"task_timeout": float("nan")},
        {"verbose": "yes"},
    ],
)
def test_wrong_options_are_named(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"^{name} must be"):
        enter(None, **options)


def test_without_ray_the_extra_is_named_and_no_cluster_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    enter(None)
    with pytest.raises(ImportError, match=r"needs Ray: pip install "):
        enter("auto")


@pytest.mark.parametrize("thing", ["Python", "Evergrow", "NumPy", "instruction set"])
def test_a_node_with_another_version_is_named_before_any_work(two_nodes, monkeypatch, thing):
    versions_of = connection._versions_of

    def with_an_odd_one(*args):
        return {**versions_of(*args), "odd (10.0.0.7)": {**local_versions(), thing: "0.0"}}

    monkeypatch.setattr(connection, "_versions_of", with_an_odd_one)
    with pytest.raises(ClusterError, match=rf"odd \(10.0.0.7\) has {thing} 0.0"):
        enter("auto")


def test_a_worker_of_a_node_that_joined_later_is_checked_too(engine, monkeypatch):
    from evergrow.distributed import ray_engine
    from tests.distributed import work

    monkeypatch.setattr(
        ray_engine, "local_versions", lambda: {**local_versions(), "Evergrow": "999"}
    )
    with pytest.raises(ClusterError, match=r"here is Evergrow 999, but\n  node .* has Evergrow"):
        list(engine.run(Job(work.shifted, range(1), [1], "adding")))


def test_more_threads_than_a_node_has_are_refused(two_nodes):
    with pytest.raises(ClusterError, match="no node has threads_per_worker=64"):
        enter("auto", threads_per_worker=64)


_CLIENT = """
import evergrow, numpy as np
from evergrow.foundation.engine import Job, current_engine
random = np.random.default_rng(0)
X, y = random.normal(size=(300, 8)), random.integers(0, 5, 300)
here = evergrow.NCMForestClassifier(8, random_state=1).fit(X, y)
# The first worker of a busy machine may take long to start.
with evergrow.cluster({address!r}, connect_timeout=120):
    assert current_engine().capacity.is_remote
    there = evergrow.NCMForestClassifier(8, random_state=1).fit(X, y)
    try:
        list(current_engine().run(Job(evergrow.cluster, [1], description="nothing")))
    except Exception as error:
        print(type(error).__name__)
print(np.array_equal(here.predict_proba(X), there.predict_proba(X)))
"""


@pytest.mark.nightly
def test_a_cluster_may_be_elsewhere(two_nodes, run_script):
    address = f"ray://{two_nodes.host}:{two_nodes.client_port}"
    done = run_script(_CLIENT.format(address=address))
    assert done.stdout.endswith("True\n"), done.stderr


_LOCAL = """
import os, signal, evergrow
before = dict(os.environ), signal.getsignal(signal.SIGTERM)
with evergrow.cluster("local", n_workers=1):
    import ray
after = dict(os.environ), signal.getsignal(signal.SIGTERM)
print(ray.is_initialized(), after == before)
os.environ["RAY_ADDRESS"] = "local"
with evergrow.cluster("auto", n_workers=1):
    print(ray.is_initialized())
"""


@pytest.mark.slow
def test_a_cluster_that_was_started_is_gone_after_the_block(needs_ray, run_script):
    done = run_script(_LOCAL)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "False True\nTrue\n"
    assert "uthentication" not in done.stderr


class FailingRay:
    """Stands in for Ray: the first ``n_failures`` connections fail with ``message``."""

    exceptions = SimpleNamespace(AuthenticationError=PermissionError, RayError=ArithmeticError)

    def __init__(self, n_failures, message):
        self.n_failures = n_failures
        self.message = message
        self.calls = []

    def init(self, **options):
        self.calls.append("init")
        if self.calls.count("init") <= self.n_failures:
            raise ConnectionAbortedError(f"Initialization failure from server: {self.message}")

    def is_initialized(self):
        return False

    def shutdown(self):
        self.calls.append("shutdown")


def test_a_server_of_the_client_that_died_at_its_start_is_asked_for_again():
    ray = FailingRay(2, "Starting Ray client server failed.")
    connection._init_client(ray, "ray://10.0.0.7:10001")
    assert ray.calls == ["init", "shutdown", "init", "shutdown", "init"]


@pytest.mark.parametrize(
    ("message", "n_calls"), [("Starting Ray client server failed.", 3), ("Other version", 1)]
)
def test_a_client_that_always_fails_is_not_tried_for_ever(message, n_calls):
    ray = FailingRay(9, message)
    with pytest.raises(ClusterError, match=f"cannot use Ray at ray://10.0.0.7:10001: .*{message}"):
        connection._init_client(ray, "ray://10.0.0.7:10001")
    assert ray.calls.count("init") == n_calls


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
