"""A hostile token and hostile connections: others teach on, and health checks are answered."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.harness.hostile_clients import (
    Attack,
    HostileClients,
    Source,
    n_open_files,
    teach_and_check,
)
from tests.harness.process import ServiceProcess
from tests.harness.workspaces import fill_workspace, new_workspace

N_FEATURES = 64
MAX_CONNECTIONS = 80
# Statuses of refusals, and reasons to close a connection, of one address and two tokens; and the
# lines of the start.
_LINES_PER_CLIENT = 30

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs many loopback addresses"),
]


@pytest.mark.parametrize(
    "source", ["one address", pytest.param("many addresses", marks=pytest.mark.nightly)]
)
def test_others_are_served_during_an_attack(tmp_path: Path, source: Source) -> None:
    folder = tmp_path / "things"
    tokens = new_workspace(folder, n_features=N_FEATURES)
    fill_workspace(folder, 200, 10)
    attack = Attack().scaled(0.1)
    assert attack.n_connections > 2 * MAX_CONNECTIONS
    with ServiceProcess(folder, ["--max-connections", str(MAX_CONNECTIONS)]) as service:
        before = teach_and_check(service.port, tokens.teach, N_FEATURES, 2.0, kinds=["vectors"])
        with HostileClients(service.port, tokens.read, attack, source) as hostile:
            during = teach_and_check(service.port, tokens.teach, N_FEATURES, 6.0, kinds=["vectors"])
            n_files = n_open_files(service.pid)
    assert not during.errors
    # The benchmark measures it; here other tests share the processors.
    assert during.per_second("vectors") > 0.1 * before.per_second("vectors")
    assert max(during.health) < 5
    assert n_files < MAX_CONNECTIONS + 100
    assert sum(hostile.found.opened.values()) > attack.n_connections
    log = service.log.read_text()
    closed = re.findall(r"connection closed to make room client=(\S+) reason=(.*)", log)
    assert closed
    # One line for each burst, not one for each connection: in a minute none repeats.
    assert len(closed) == len(set(closed))
    assert len(log.splitlines()) < during.taught["vectors"] + before.taught["vectors"] + (
        _LINES_PER_CLIENT * (1 if source == "one address" else attack.n_connections)
    )


@pytest.mark.nightly
def test_a_flood_of_health_checks_does_not_slow_others(tmp_path: Path) -> None:
    folder = tmp_path / "things"
    tokens = new_workspace(folder, n_features=N_FEATURES)
    flood = Attack(**{**dict.fromkeys(vars(Attack()), 0), "health_floods": 60})
    with ServiceProcess(folder) as service:
        before = teach_and_check(service.port, tokens.teach, N_FEATURES, 3.0, kinds=["vectors"])
        with HostileClients(service.port, tokens.read, flood, "one address") as hostile:
            during = teach_and_check(service.port, tokens.teach, N_FEATURES, 5.0, kinds=["vectors"])
    assert not during.errors
    # Without a limit on health checks it was less than a tenth.
    assert during.per_second("vectors") > 0.3 * before.per_second("vectors")
    # Also the checks of the address that floods are answered.
    assert max(during.health) < 2
    assert hostile.found.statuses["health_floods", 200] > 100
