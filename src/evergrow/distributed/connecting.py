"""Finding a Ray cluster, or starting one, and leaving it as it was found."""

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

from evergrow.distributed.failing import raised_elsewhere
from evergrow.distributed.forking import check_not_forked, is_forked
from evergrow.distributed.on_worker import on_node, report_versions
from evergrow.distributed.versions import Versions, check_nodes, versions_here
from evergrow.foundation.errors import ClusterError

__all__ = ["check_address", "connected"]

_CLIENT = "ray://"
_ADDRESS = re.compile(r"(?:ray://)?(?P<host>\[[0-9a-fA-F:.%]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})")

# Variables that Ray or we set for a cluster, put back when it is left; ours where there is a value.
_VARIABLES = {
    "PYTHONBREAKPOINT": None,
    "RAY_AUTH_MODE": None,
    "RAY_CLIENT_MODE": None,
    # A job that fails has two results, and we ask for one of them.
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    # Statistics are sent by nobody who was not asked.
    "RAY_USAGE_STATS_ENABLED": "0",
}

# A worker imports its modules from a disk that may be cold or shared by many.
_FIRST_WORKER_SECONDS = 60.0

_TOKENS = (
    "it asks for a token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or ~/.ray/auth_token to the "
    "cluster's token"
)


def check_address(address: Any) -> None:
    """Raise a ``ValueError`` for what cannot be the address of a cluster."""
    if address is None or address in ("auto", "local"):
        return
    parsed = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if parsed is None or not 0 < int(parsed["port"]) < 65536:
        raise ValueError(
            "address must be None, 'auto', 'local', 'host:port' or 'ray://host:port', "
            f"got {address!r}"
        )


@contextmanager
def connected(
    address: str, *, n_processors: int | None, threads_per_worker: int, connect_timeout: float
) -> Iterator[None]:
    """Be connected to Ray while the block runs; what was there before is there afterwards.

    ``n_processors`` is for a cluster that is started here.
    """
    check_not_forked()
    with _handler_kept():
        ray = _connection.enter(address, n_processors, connect_timeout)
        try:
            _check_cluster(ray, threads_per_worker, connect_timeout)
            yield
        finally:
            _connection.leave()


class _Connection:
    """What the blocks of a process share, in all of its threads.

    Ray knows one connection of a process: the first block makes it, the last one ends it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_blocks = 0
        self._undone = ExitStack()

    def enter(self, address: str, n_processors: int | None, connect_timeout: float) -> Any:
        """Count one more block that uses Ray, which is connected then; gives its module."""
        with self._lock, ExitStack() as undone:
            if self._n_blocks == 0:
                undone.enter_context(_variables_kept())
            ray = _import_ray()
            if ray.is_initialized():
                _check_same(ray, address)
            else:
                do = _lasting_thread(undone)
                undone.callback(_leave, ray)
                do(_connect, ray, address, n_processors, connect_timeout)
            self._undone.push(undone.pop_all())
            self._n_blocks += 1
            return ray

    def leave(self) -> None:
        """Count one less."""
        # The connection is that of the process that was forked, and so are its locks.
        if is_forked():
            return
        with self._lock:
            self._n_blocks -= 1
            if self._n_blocks == 0:
                self._undone.close()


_connection = _Connection()


def _lasting_thread(undone: ExitStack) -> Callable[..., None]:
    """What calls a function in a thread that lives until ``undone`` is closed.

    Linux ends the processes that Ray started when the thread ends that started them, and another
    thread may have a block then.
    """
    if threading.current_thread() is threading.main_thread():
        return lambda function, *values: function(*values)
    threads = undone.enter_context(ThreadPoolExecutor(1, thread_name_prefix="evergrow-ray"))
    return lambda function, *values: threads.submit(function, *values).result()


def _import_ray() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
    except ImportError as error:
        raise ImportError(
            'work on a cluster needs Ray: pip install "evergrow[cluster]" '
            "(evergrow.cluster(None) needs nothing)"
        ) from error
    return ray


def _check_same(ray: Any, address: str) -> None:
    """One process talks to one Ray: say so where another is asked for."""
    if address == "auto" or (address.startswith(_CLIENT) and _is_client()):
        return
    current = "another address" if _is_client() else ray.get_runtime_context().gcs_address
    if address == current:
        return
    raise ClusterError(
        f"this process is connected to Ray at {current} already and can be to one cluster only: "
        f"leave it before {address!r}, or use 'auto' to share it"
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
    target = _found(address, connect_timeout)
    if target is None:
        here = {"num_cpus": n_processors, "include_dashboard": False}
        _init(ray, "this machine", address="local", **options, **here)
    elif target.startswith(_CLIENT):
        options.pop("configure_logging")
        _init(ray, target, address=target, **options)
    else:
        # By its name "auto" Ray takes up the token of a cluster on this machine.
        by_name = address == "auto" and not os.environ.get("RAY_ADDRESS")
        _init(ray, target, address="auto" if by_name else target, **options)


def _init(ray: Any, where: str, **options: Any) -> None:
    try:
        with warnings.catch_warnings(), _quiet():
            warnings.simplefilter("ignore")
            ray.init(**options)
    except ray.exceptions.AuthenticationError as error:
        raise ClusterError(f"Ray at {where} refused us: {_TOKENS}") from error
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        if "uthenticat" in str(error):
            raise ClusterError(f"Ray at {where} refused us: {_TOKENS}") from error
        raise ClusterError(f"cannot use Ray at {where}: {error}") from error


def _found(address: str, connect_timeout: float) -> str | None:
    """Where a cluster is that answers; None if one is to be started here."""
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
    # Ray remembers clusters that died, and would wait for one for minutes.
    return found if found is not None and _answers(found, min(2.0, connect_timeout)) else None


def _running_here() -> str | None:
    # There is no public way to ask without also connecting.
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
            f"no Ray cluster answers at {address} within {connect_timeout:g} seconds of asking: is "
            "it running, and can its port be reached from here?"
        )


def _answers(address: str, seconds: float) -> bool:
    """Whether something that speaks Ray's protocol listens; Ray itself would wait for minutes."""
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
    """Ask every node that would get work what it runs."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    able = [node for node in nodes if node["Resources"].get("CPU", 0) >= threads_per_worker]
    if not able:
        most = max((node["Resources"].get("CPU", 0) for node in nodes), default=0)
        raise ClusterError(
            f"no node has the {threads_per_worker} processors of threads_per_worker; the largest "
            f"has {most:g}"
        )
    check_nodes(versions_here(), _versions_of(ray, able, connect_timeout))


def _versions_of(
    ray: Any, nodes: list[dict[str, Any]], connect_timeout: float
) -> dict[str, Versions]:
    asked = {on_node(ray, node, report_versions): node for node in nodes}
    # A node starts its first worker only now, which takes seconds.
    patience = max(_FIRST_WORKER_SECONDS, connect_timeout)
    done, _ = ray.wait(list(asked), num_returns=len(asked), timeout=patience)
    found: dict[str, Versions] = {}
    for reference, node in asked.items():
        try:
            found[_label(node)] = ray.get(reference, timeout=None if reference in done else 0)
        except ray.exceptions.RayError as error:
            # Some leave while they are asked; those that are left do the work.
            if _is_alive(ray, node):
                raise ClusterError(f"{_label(node)} {_why_not(error, patience)}") from error
    return found


def _why_not(error: Exception, patience: float) -> str:
    from ray.exceptions import GetTimeoutError

    if isinstance(error, GetTimeoutError):
        return f"starts no worker within {patience:g} seconds"
    return f"cannot run Evergrow: {raised_elsewhere(error, 'asking for versions', 0)}"


def _label(node: dict[str, Any]) -> str:
    where = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
    return f"{where}, node {node['NodeID'][:8]}"


def _is_alive(ray: Any, node: dict[str, Any]) -> bool:
    return any(n["NodeID"] == node["NodeID"] and n["Alive"] for n in ray.nodes())


def _leave(ray: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.shutdown()


@contextmanager
def _quiet() -> Iterator[None]:
    """Say nothing about clusters that start as they should; errors are still said."""
    logger = logging.getLogger("ray")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _variables_kept() -> Iterator[None]:
    """Set what Ray should find in the environment, and put back what it changes there.

    Ray also prints by a function of its own.
    """
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
def _handler_kept() -> Iterator[None]:
    """Put back what Ray does when the process is told to end; only the main thread can."""
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM) if is_main else None
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)
