"""Connects to a Ray cluster or starts one, and restores the state before when it is left."""

from __future__ import annotations

import builtins
import logging
import os
import re
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

from evergrow.distributed.dispatch import check_not_forked, is_forked, local_error
from evergrow.distributed.worker import (
    Versions,
    check_nodes,
    local_versions,
    report_versions,
    submit_to_node,
)
from evergrow.foundation.errors import ClusterError, InvalidInputError
from evergrow.foundation.extras import install_command
from evergrow.foundation.formatting import format_count

_CLIENT = "ray://"
_CLIENT_ATTEMPTS = 3
_ADDRESS = re.compile(r"(?:ray://)?(?P<host>\[[0-9a-fA-F:.%]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})")

# Environment variables that Ray changes, restored afterwards; a value here is one that we set.
_VARIABLES = {
    "PYTHONBREAKPOINT": None,
    "RAY_AUTH_MODE": None,
    "RAY_CLIENT_MODE": None,
    # A failed call has two results, and only one of them is fetched.
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    # A link that is cut is noticed within seconds; by default Ray waits seven minutes for a packet.
    "RAY_grpc_client_keepalive_time_ms": "10000",
    "RAY_grpc_client_keepalive_timeout_ms": "10000",
    # No usage statistics without consent.
    "RAY_USAGE_STATS_ENABLED": "0",
}

# A new worker imports modules from a disk that may be cold or shared.
_FIRST_WORKER_SECONDS = 60.0

_TOKENS = (
    "it requires a token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or ~/.ray/auth_token to the "
    "cluster's token"
)


def check_address(address: Any) -> None:
    """Raise a ``ValueError`` if this cannot be the address of a cluster."""
    if address is None or address in ("auto", "local"):
        return
    parsed = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if parsed is None or not 0 < int(parsed["port"]) < 65536:
        raise InvalidInputError(
            "address must be None, 'auto', 'local', 'host:port' or 'ray://host:port', "
            f"got {address!r}"
        )


@contextmanager
def connected(
    address: str, *, n_processors: int | None, threads_per_worker: int, connect_timeout: float
) -> Iterator[None]:
    """Connect to Ray for the duration of the block, and restore the state before.

    ``n_processors`` is the size of a cluster that is started here.
    """
    check_not_forked()
    with _restored_signal_handler():
        ray = _connection.enter(address, n_processors, connect_timeout)
        try:
            _check_cluster(ray, threads_per_worker, connect_timeout)
            yield
        finally:
            _connection.leave()


class _Connection:
    """The connection that all blocks of a process share, in all threads.

    Ray allows one connection per process: the first block opens it, the last one closes it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_blocks = 0
        self._cleanup = ExitStack()

    def enter(self, address: str, n_processors: int | None, connect_timeout: float) -> Any:
        """Connect if this is the first block; return the module of Ray."""
        with self._lock, ExitStack() as cleanup:
            if self._n_blocks == 0:
                cleanup.enter_context(_restored_environment())
            ray = _import_ray()
            if ray.is_initialized():
                _check_same(ray, address)
            else:
                call = _persistent_thread(cleanup)
                cleanup.callback(_shut_down, ray)
                call(_connect, ray, address, n_processors, connect_timeout)
            self._cleanup.push(cleanup.pop_all())
            self._n_blocks += 1
            return ray

    def leave(self) -> None:
        """Disconnect if this was the last block."""
        # In a forked process the connection and its locks belong to the parent.
        if is_forked():
            return
        with self._lock:
            self._n_blocks -= 1
            if self._n_blocks == 0:
                self._cleanup.close()


_connection = _Connection()


def _persistent_thread(cleanup: ExitStack) -> Callable[..., None]:
    """Return a function that calls another in a thread that lives until ``cleanup`` is closed.

    Linux kills the processes of Ray when the thread that started them ends, and another thread may
    still be inside a block then.
    """
    if threading.current_thread() is threading.main_thread():
        return lambda function, *values: function(*values)
    threads = cleanup.enter_context(ThreadPoolExecutor(1, thread_name_prefix="evergrow-ray"))
    return lambda function, *values: threads.submit(function, *values).result()


def _import_ray() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
    except ImportError as error:
        raise ImportError(
            f"evergrow.cluster needs Ray: {install_command('ray')} "
            "(evergrow.cluster(None) works without)"
        ) from error
    return ray


def _check_same(ray: Any, address: str) -> None:
    """Raise a ``ClusterError`` if the process is connected to another cluster."""
    if address == "auto" or (address.startswith(_CLIENT) and _is_client()):
        return
    current = "another address" if _is_client() else ray.get_runtime_context().gcs_address
    if address == current:
        return
    raise ClusterError(
        f"this process is already connected to Ray at {current} and can use only one cluster: "
        f"leave it before using {address!r}, or use 'auto' to share it"
    )


def _is_client() -> bool:
    from ray.util.client import ray as client

    connection: Any = client
    return bool(connection.is_connected())


def _connect(ray: Any, address: str, n_processors: int | None, connect_timeout: float) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    chosen = os.environ.get("EVERGROW_ISA")
    if chosen:
        options["runtime_env"] = {"env_vars": {"EVERGROW_ISA": chosen}}
    target = _find_cluster(address, connect_timeout)
    if target is None:
        here = {"num_cpus": n_processors, "include_dashboard": False}
        _init(ray, "this machine", address="local", **options, **here)
    elif target.startswith(_CLIENT):
        options.pop("configure_logging")
        _init_client(ray, target, **options)
    else:
        # With the address "auto" Ray finds the token of a cluster on this machine.
        by_name = address == "auto" and not os.environ.get("RAY_ADDRESS")
        _init(ray, target, address="auto" if by_name else target, **options)


def _init_client(ray: Any, target: str, **options: Any) -> None:
    """Connect through a Ray client, again if the process that serves it died at its start.

    Ray forks that process while threads of gRPC run, and now and then it crashes.
    """
    for left in reversed(range(_CLIENT_ATTEMPTS)):
        try:
            _init(ray, target, address=target, **options)
            break
        except ClusterError as error:
            if not left or "Starting Ray client server failed" not in str(error):
                raise
            _shut_down(ray)


def _init(ray: Any, where: str, **options: Any) -> None:
    try:
        with warnings.catch_warnings(), _quiet():
            warnings.simplefilter("ignore")
            ray.init(**options)
    except ray.exceptions.AuthenticationError as error:
        raise ClusterError(f"Ray at {where} refused the connection: {_TOKENS}") from error
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        if "uthenticat" in str(error):
            raise ClusterError(f"Ray at {where} refused the connection: {_TOKENS}") from error
        raise ClusterError(f"cannot use Ray at {where}: {error}") from error


def _find_cluster(address: str, connect_timeout: float) -> str | None:
    """Return the address of a cluster that answers; None to start one here."""
    if address == "local":
        return None
    if address != "auto":
        _check_answers(address, connect_timeout)
        return address
    named = os.environ.get("RAY_ADDRESS")
    if named and named not in ("auto", "local"):
        _check_answers(named, connect_timeout)
        return named
    if named == "local":
        return None
    found = _running_here()
    # Ray remembers dead clusters and would wait minutes for one.
    return found if found is not None and _answers(found, min(2.0, connect_timeout)) else None


def _running_here() -> str | None:
    # The public API cannot look for a cluster without connecting.
    from ray._private.services import canonicalize_bootstrap_address

    try:
        found: str | None = canonicalize_bootstrap_address("auto")
    except ConnectionError:
        return None
    return found


def _check_answers(address: str, connect_timeout: float) -> None:
    check_address(address)
    if not _answers(address, connect_timeout):
        raise ClusterError(
            f"no Ray cluster answers at {address} within "
            f"{format_count(connect_timeout, 'second')}: is it running, and can its port be "
            "reached from here?"
        )


def _answers(address: str, seconds: float) -> bool:
    """Whether a server with Ray's protocol listens there; Ray itself would wait for minutes."""
    target = address.removeprefix(_CLIENT)
    host, _, port = target.rpartition(":")
    try:
        grpc: Any = import_module("grpc")
    except ImportError:
        grpc = None
    if grpc is None or os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
        except OSError:
            return False
        return True
    with grpc.insecure_channel(target) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=seconds)
        except grpc.FutureTimeoutError:
            return False
    return True


def _check_cluster(ray: Any, threads_per_worker: int, connect_timeout: float) -> None:
    """Check the size and the versions of every node that could run work."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    able = [node for node in nodes if node["Resources"].get("CPU", 0) >= threads_per_worker]
    if not able:
        most = max((node["Resources"].get("CPU", 0) for node in nodes), default=0)
        raise ClusterError(
            f"no node has threads_per_worker={threads_per_worker} processors; the largest has "
            f"{most:g}"
        )
    check_nodes(local_versions(), _versions_of(ray, able, connect_timeout))


def _versions_of(
    ray: Any, nodes: list[dict[str, Any]], connect_timeout: float
) -> dict[str, Versions]:
    calls = {submit_to_node(ray, node, report_versions): node for node in nodes}
    # A node starts its first worker only now, which takes seconds.
    timeout = max(_FIRST_WORKER_SECONDS, connect_timeout)
    done, _ = ray.wait(list(calls), num_returns=len(calls), timeout=timeout)
    found: dict[str, Versions] = {}
    for reference, node in calls.items():
        try:
            found[_label(node)] = ray.get(reference, timeout=None if reference in done else 0)
        except ray.exceptions.RayError as error:
            # A node may leave meanwhile; the others do the work.
            if _is_alive(ray, node):
                raise ClusterError(f"{_label(node)} {_reason(error, timeout)}") from error
    return found


def _reason(error: Exception, timeout: float) -> str:
    from ray.exceptions import GetTimeoutError

    if isinstance(error, GetTimeoutError):
        return f"did not start a worker within {format_count(timeout, 'second')}"
    return f"cannot run Evergrow: {local_error(error, 'asking for versions', 0)}"


def _label(node: dict[str, Any]) -> str:
    where = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
    return f"{where}, node {node['NodeID'][:8]}"


def _is_alive(ray: Any, node: dict[str, Any]) -> bool:
    return any(n["NodeID"] == node["NodeID"] and n["Alive"] for n in ray.nodes())


def _shut_down(ray: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.shutdown()


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide Ray's messages about a cluster that starts normally; errors are still shown."""
    logger = logging.getLogger("ray")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _restored_environment() -> Iterator[None]:
    """Set environment variables for Ray, and undo what Ray changes, such as ``print``."""
    before = {name: os.environ.get(name) for name in _VARIABLES}
    plain_print = builtins.print
    os.environ.update(
        {n: v for n, v in _VARIABLES.items() if v is not None and n not in os.environ}
    )
    try:
        yield
    finally:
        builtins.print = plain_print
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _restored_signal_handler() -> Iterator[None]:
    """Restore the SIGTERM handler that Ray replaces; only the main thread can."""
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM) if is_main else None
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)
