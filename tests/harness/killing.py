"""Power failures while several clients teach: nothing that was acknowledged may be lost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.harness.pictures import photograph
from tests.harness.process import ServiceProcess
from tests.harness.pupils import Acknowledged, Pupil
from tests.harness.workspaces import (
    Contents,
    contents_of,
    damage_in,
    new_workspace,
    twin_difference,
)

# Share of the kills that come before the service answers: while it opens and recovers.
STARTING_SHARE = 0.25
# Seconds of teaching before a kill: from the first request to some hundred.
SHORTEST, LONGEST = 0.002, 1.0
N_PUPILS = 4
# More than the clients can send.
RATE = ("--rate", "100000")


@dataclass(frozen=True)
class Survival:
    """What was found after the last kill."""

    n_kills: int
    n_kills_starting: int
    n_acknowledged: int
    n_lost: int
    n_duplicates: int
    # Examples in the workspace that nobody was told of.
    n_unknown: int
    n_retried: int
    n_already_taught: int
    n_orphans: int
    failures: tuple[str, ...]
    damage: tuple[str, ...]
    # Largest difference between scores of the workspace and of the undisturbed twin.
    difference: float


def killed_while_taught(
    folder: Path,
    n_kills: int,
    *,
    features: object | None = None,
    n_features: int | None = None,
    picture_share: float = 0.0,
    seed: int = 0,
) -> Survival:
    """Teach a new workspace from four clients, kill its service again and again, and look."""
    tokens = new_workspace(folder, features=features, n_features=n_features)
    service = ServiceProcess(folder, RATE)
    service.start()
    starting_seconds = service.wait_ready()
    pupils = [
        Pupil(
            number,
            service.port,
            tokens.teach,
            tokens.n_features,
            pictures=tuple(photograph(seed, width=96, height=64) for seed in range(10)),
            picture_share=picture_share,
        )
        for number in range(N_PUPILS)
    ]
    for pupil in pupils:
        pupil.start()
    kills = _killed(service, n_kills, starting_seconds, np.random.default_rng(seed))
    # Each client has its last lesson acknowledged, then the service ends as it should.
    service.start()
    for pupil in pupils:
        pupil.end()
    for pupil in pupils:
        pupil.join()
    service.stop()
    return _survival(folder, pupils, kills)


@dataclass(frozen=True)
class _Kills:
    """How often a service was killed, how often while starting, and what it left running."""

    n: int
    n_starting: int
    n_orphans: int


def _killed(
    service: ServiceProcess, n_kills: int, starting_seconds: float, rng: np.random.Generator
) -> _Kills:
    """Kill a service and start it again, at random moments of its life."""
    n_starting = n_orphans = 0
    for _ in range(n_kills):
        if not service.running:
            service.start()
            if rng.random() < STARTING_SHARE:
                time.sleep(rng.uniform(0.0, starting_seconds))
                service.kill()
                n_starting += 1
                continue
            service.wait_ready()
        time.sleep(float(np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST)))))
        service.kill()
        n_orphans += len(service.orphans())
    return _Kills(n_kills, n_starting, n_orphans)


def _survival(folder: Path, pupils: Sequence[Pupil], kills: _Kills) -> Survival:
    """What is in a workspace, against what its pupils were told."""
    acknowledged = [lesson for pupil in pupils for lesson in pupil.acknowledged]
    lost, duplicates, unknown = compared(acknowledged, contents_of(folder))
    return Survival(
        kills.n,
        kills.n_starting,
        len(acknowledged),
        lost,
        duplicates,
        unknown,
        sum(pupil.n_retried for pupil in pupils),
        sum(pupil.n_already_taught for pupil in pupils),
        kills.n_orphans,
        tuple(failure for pupil in pupils for failure in pupil.failures),
        tuple(damage_in(folder)),
        twin_difference(folder, folder.with_name(f"{folder.name}-twin")),
    )


def compared(acknowledged: Sequence[Acknowledged], found: Contents) -> tuple[int, int, int]:
    """How many acknowledged lessons are not there, there twice, and there unasked for."""
    lost = sum(
        found.get(lesson.example) != (lesson.label, lesson.content) for lesson in acknowledged
    )
    times = Counter(content for _, content in found.values())
    duplicates = sum(n - 1 for n in times.values())
    known = {lesson.content for lesson in acknowledged}
    unknown = sum(content not in known for content in times)
    return lost, duplicates, unknown
