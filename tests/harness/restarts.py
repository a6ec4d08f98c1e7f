"""Back up and stop a service while clients teach."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.harness.crashes import compare
from tests.harness.process import ServiceProcess
from tests.harness.teaching_clients import Acknowledged, TeachingClient, finish
from tests.harness.workspaces import Tokens, find_damage, read_contents


@dataclass(frozen=True)
class Stopping:
    """The result of a backup and a stop while clients taught."""

    n_acknowledged: int
    n_lost: int
    n_duplicates: int
    n_lost_in_copy: int
    damage: tuple[str, ...]
    failures: tuple[str, ...]


def stop_while_teaching(
    service: ServiceProcess, tokens: Tokens, copy: Path, *, seconds: float, n_clients: int = 4
) -> Stopping:
    """Teach the running service, back it up, stop it, start it again, and check it."""
    before = set(read_contents(service.folder))
    clients = [
        TeachingClient(number, service.port, tokens.teach, tokens.n_features)
        for number in range(n_clients)
    ]
    for client in clients:
        client.start()
    time.sleep(seconds)
    acknowledged = _acknowledged(clients)
    command = [sys.executable, "-m", "evergrow", "backup", str(service.folder), str(copy)]
    subprocess.run(command, check=True, capture_output=True)
    service.stop()
    # Clients that were refused during the stop retry and are served.
    finish(clients, service)
    examples = _acknowledged(clients)
    found = {id_: one for id_, one in read_contents(service.folder).items() if id_ not in before}
    lost, duplicates, _ = compare(examples, found)
    return Stopping(
        len(examples),
        lost,
        duplicates,
        compare(acknowledged, read_contents(copy))[0],
        (*find_damage(service.folder), *find_damage(copy)),
        tuple(failure for client in clients for failure in client.failures),
    )


def _acknowledged(clients: Sequence[TeachingClient]) -> list[Acknowledged]:
    return [example for client in clients for example in tuple(client.acknowledged)]
