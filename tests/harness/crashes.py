"""Kill the service while several clients teach: nothing acknowledged may be lost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.harness.pictures import photograph
from tests.harness.process import NO_RATE_LIMIT, ServiceProcess
from tests.harness.teaching_clients import Acknowledged, TeachingClient, finish
from tests.harness.workspaces import (
    Contents,
    find_damage,
    new_workspace,
    read_contents,
    twin_difference,
)

# Share of the kills while the service is starting and recovering.
STARTING_SHARE = 0.25
# Seconds of teaching before a kill: from the first request to several hundred.
SHORTEST, LONGEST = 0.002, 1.0
N_CLIENTS = 4


@dataclass(frozen=True)
class Survival:
    """What was found after the last kill."""

    n_acknowledged: int
    n_lost: int
    n_duplicates: int
    # Examples in the workspace that no client got a response for.
    n_unknown: int
    n_orphans: int
    failures: tuple[str, ...]
    damage: tuple[str, ...]
    # Largest difference between scores of the workspace and of the undisturbed twin.
    difference: float


def kill_while_teaching(
    folder: Path,
    n_kills: int,
    *,
    features: object | None = None,
    n_features: int | None = None,
    picture_share: float = 0.0,
    seed: int = 0,
) -> Survival:
    """Teach a new workspace with four clients, kill its service repeatedly, and check it."""
    tokens = new_workspace(folder, features=features, n_features=n_features)
    service = ServiceProcess(folder, NO_RATE_LIMIT)
    service.start()
    starting_seconds = service.wait_ready()
    clients = [
        TeachingClient(
            number,
            service.port,
            tokens.teach,
            tokens.n_features,
            pictures=tuple(photograph(seed, width=96, height=64) for seed in range(10)),
            picture_share=picture_share,
        )
        for number in range(N_CLIENTS)
    ]
    for client in clients:
        client.start()
    n_orphans = _kill_repeatedly(service, n_kills, starting_seconds, np.random.default_rng(seed))
    finish(clients, service)
    return _check(folder, clients, n_orphans)


def _kill_repeatedly(
    service: ServiceProcess, n_kills: int, starting_seconds: float, rng: np.random.Generator
) -> int:
    """Kill and restart a service at random moments; return how many processes it left running."""
    n_orphans = 0
    for _ in range(n_kills):
        if not service.running:
            service.start()
            if rng.random() < STARTING_SHARE:
                time.sleep(rng.uniform(0.0, starting_seconds))
                service.kill()
                continue
            service.wait_ready()
        time.sleep(float(np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST)))))
        service.kill()
        n_orphans += len(service.orphans())
    return n_orphans


def _check(folder: Path, clients: Sequence[TeachingClient], n_orphans: int) -> Survival:
    """Compare a workspace with the responses to its clients."""
    acknowledged = [example for client in clients for example in client.acknowledged]
    lost, duplicates, unknown = compare(acknowledged, read_contents(folder))
    return Survival(
        len(acknowledged),
        lost,
        duplicates,
        unknown,
        n_orphans,
        tuple(failure for client in clients for failure in client.failures),
        tuple(find_damage(folder)),
        twin_difference(folder, folder.with_name(f"{folder.name}-twin")),
    )


def compare(acknowledged: Sequence[Acknowledged], found: Contents) -> tuple[int, int, int]:
    """Count acknowledged examples that are missing, duplicates, and unknown examples."""
    lost = sum(
        found.get(example.example) != (example.label, example.content) for example in acknowledged
    )
    times = Counter(content for _, content in found.values())
    duplicates = sum(n - 1 for n in times.values())
    known = {example.content for example in acknowledged}
    unknown = sum(content not in known for content in times)
    return lost, duplicates, unknown
