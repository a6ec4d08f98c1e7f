"""One Ray cluster of two nodes for all tests of this folder."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import evergrow
from evergrow.foundation.engine import current_engine

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


@pytest.fixture(scope="session")
def two_nodes():
    """A cluster of two nodes with one processor each, and this process connected to it."""
    pytest.importorskip("ray", reason="Ray is not installed")
    import ray
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        # Workers import the work of these tests.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        patch.delenv("RAY_ADDRESS", raising=False)
        head = {"num_cpus": 1, "include_dashboard": False, "ray_client_server_port": free_port()}
        with rays_own_warnings():
            cluster = Cluster(initialize_head=True, head_node_args=head)
            cluster.client_port = head["ray_client_server_port"]
            cluster.add_node(num_cpus=1)
            ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
        yield cluster
        with rays_own_warnings():
            ray.shutdown()
            cluster.shutdown()


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
