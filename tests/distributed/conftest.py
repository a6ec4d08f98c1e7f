"""One Ray cluster of two nodes for all tests of this folder."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import time
import warnings
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import evergrow
from evergrow.foundation.engine import current_engine
from tests.distributed.namespaces import Network, why_no_namespaces

_ROOT = Path(__file__).parents[2]


def free_port():
    """A port for this process, below those that systems give to outgoing connections.

    Any program could take one of those between this call and the start of the server.
    """
    first = 20_000 + os.getpid() % 100 * 100
    for port in range(first, first + 100):
        with socket.socket() as listening, suppress(OSError):
            listening.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"no port from {first} to {first + 99} is free")


@contextmanager
def rays_own_warnings():
    """Ray's utility for clusters leaves files open; they are closed, and forgotten, here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
        gc.collect()


# Ray's own limits are minutes.
_PATIENCE = {
    "RAY_grpc_client_keepalive_time_ms": "1000",
    "RAY_grpc_client_keepalive_timeout_ms": "2000",
}
_HEALTH_CHECKS = {
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1500,
    "health_check_failure_threshold": 3,
}


class TwoNodes:
    """A head here and nodes in network namespaces; without these, all on one address."""

    def __init__(self, network):
        from ray.cluster_utils import Cluster

        self._network = network
        self._nodes = []
        self.client_port = free_port()
        head = {"num_cpus": 1, "include_dashboard": False, "_system_config": _HEALTH_CHECKS}
        head["ray_client_server_port"] = self.client_port
        if network is not None:
            head["node_ip_address"] = network.address
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address = self._cluster.address
        self.host = self.address.rpartition(":")[0]

    def add_node(self, n_processors):
        """Add a node and wait for it; its ``kill`` takes it away again."""
        import ray

        if self._network is None:
            return OneAddressNode(self._cluster, n_processors)
        n_before = len(ray.nodes())
        machine = self._network.add_machine()
        self._nodes.append(machine)
        options = f"--address {self.address} --num-cpus {n_processors} --block".split()
        options += ["--node-ip-address", machine.address]
        machine.start(sys.executable, "-m", "ray.scripts.scripts", "start", *options)
        deadline = time.monotonic() + 60
        while len(ray.nodes()) == n_before:
            assert time.monotonic() < deadline, f"no node joined from {machine.address}"
            time.sleep(0.05)
        return machine

    def pids(self):
        """Processes that started the workers of this cluster."""
        here = {
            info.process.pid
            for node in self._cluster.list_all_nodes()
            for infos in node.all_processes.values()
            for info in infos
        }
        return here.union(*(machine.pids() for machine in self._nodes))

    def close(self):
        self._cluster.shutdown()


class OneAddressNode:
    """A node on the address of the head."""

    def __init__(self, cluster, n_processors):
        self._cluster = cluster
        with rays_own_warnings():
            self._node = cluster.add_node(num_cpus=n_processors)

    def kill(self):
        with rays_own_warnings():
            self._cluster.remove_node(self._node, allow_graceful=False)


@pytest.fixture(scope="session")
def network():
    """A network of namespaces; None where they cannot be made."""
    if why_no_namespaces() is not None:
        yield None
        return
    with closing(Network()) as made:
        yield made


@pytest.fixture(scope="session")
def two_nodes(network):
    """A cluster of two nodes with one processor each, and this process connected to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        # Ray reads these when it is imported.
        for name, value in _PATIENCE.items():
            patch.setenv(name, value)
        # Workers import the work of these tests.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        patch.delenv("RAY_ADDRESS", raising=False)
        ray = pytest.importorskip("ray", reason="Ray is not installed")
        with rays_own_warnings():
            cluster = TwoNodes(network)
            ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
            cluster.add_node(1)
        yield cluster
        with rays_own_warnings():
            ray.shutdown()
            cluster.close()


@pytest.fixture
def needs_ray():
    pytest.importorskip("ray", reason="Ray is not installed")


@pytest.fixture
def engine(two_nodes):
    """The engine of a block on the two nodes."""
    with evergrow.cluster("auto"):
        yield current_engine()


@pytest.fixture(scope="session")
def rows():
    """Rows of 12 classes that overlap."""
    random = np.random.default_rng(0)
    y = random.integers(0, 12, 3000)
    X = random.normal(size=(12, 40))[y] + 1.5 * random.normal(size=(3000, 40))
    return X.astype(np.float32), y


@pytest.fixture
def run_script(tmp_path):
    """Run a program of its own, as a user would; gives the finished process."""

    def run(text, **variables):
        script = tmp_path / "script.py"
        script.write_text(text)
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", **variables}
        environment.pop("RAY_ADDRESS", None)
        command = [sys.executable, str(script)]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    return run


def enter(address, **options):
    """Open a block and leave it."""
    with evergrow.cluster(address, **options):
        pass


def same_trees(one, other):
    """Whether two forests are equal to the last bit."""
    found, expected = one._fitted.forest, other._fitted.forest
    return len(found) == len(expected) and all(
        all(np.array_equal(a, b) for a, b in zip(first.values(), second.values(), strict=True))
        for first, second in (
            (found.tree_arrays(tree), expected.tree_arrays(tree)) for tree in range(len(found))
        )
    )
