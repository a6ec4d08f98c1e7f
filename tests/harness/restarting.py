"""Starting, stopping and copying a workspace of 10 000 examples."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.harness.killing import compared
from tests.harness.process import ServiceProcess
from tests.harness.pupils import Acknowledged, Pupil
from tests.harness.workspaces import (
    Tokens,
    contents_of,
    damage_in,
)


@dataclass(frozen=True)
class Stopping:
    """A service that was copied and stopped while clients taught it."""

    n_acknowledged: int
    n_lost: int
    n_duplicates: int
    n_lost_in_copy: int
    damage: tuple[str, ...]
    failures: tuple[str, ...]
    # Of the stop and of the copy.
    seconds: float
    copy_seconds: float


def stopped_while_taught(
    service: ServiceProcess, tokens: Tokens, copy: Path, *, seconds: float, n_pupils: int = 4
) -> Stopping:
    """Teach the running service; copy it, stop it, start it again and look what is there."""
    before = set(contents_of(service.folder))
    pupils = [
        Pupil(number, service.port, tokens.teach, tokens.n_features) for number in range(n_pupils)
    ]
    for pupil in pupils:
        pupil.start()
    time.sleep(seconds)
    told = _acknowledged(pupils)
    begun = time.perf_counter()
    command = [sys.executable, "-m", "evergrow", "backup", str(service.folder), str(copy)]
    subprocess.run(command, check=True, capture_output=True)
    copied = time.perf_counter() - begun
    stopped = service.stop()
    # Those whose requests were refused while it stopped come again and are served.
    service.start()
    for pupil in pupils:
        pupil.end()
    for pupil in pupils:
        pupil.join()
    service.stop()
    lessons = _acknowledged(pupils)
    found = {id_: one for id_, one in contents_of(service.folder).items() if id_ not in before}
    lost, duplicates, _ = compared(lessons, found)
    return Stopping(
        len(lessons),
        lost,
        duplicates,
        compared(told, contents_of(copy))[0],
        (*damage_in(service.folder), *damage_in(copy)),
        tuple(failure for pupil in pupils for failure in pupil.failures),
        stopped,
        copied,
    )


def _acknowledged(pupils: Sequence[Pupil]) -> list[Acknowledged]:
    return [lesson for pupil in pupils for lesson in tuple(pupil.acknowledged)]
