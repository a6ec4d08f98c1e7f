"""A disk that fills up while someone teaches: a clear answer, nothing half done, and on it goes."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.harness.asking import Body, Caller, Reply, embedding_body, embeddings_body, picture_body
from tests.harness.pictures import different, photograph
from tests.harness.process import ServiceProcess
from tests.harness.workspaces import contents_of, damage_in, new_workspace

RATE = ("--rate", "100000")
PAGE = 4096
# Pages of room left when teaching begins: each runs out at another step of a lesson.
ROOMS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 30, 40, 60, 90, 150)
# More lessons than fit into any of these rooms.
MOST_LESSONS = 5000


@dataclass
class Fullness:
    """What happened on a disk without room."""

    n_full: int = 0
    n_taught: int = 0
    # Wrong answers, files left aside, lessons lost or half taught, damage.
    wrong: list[str] = field(default_factory=list)


class FullDisk:
    """A file that leaves as much room on a disk as one wants."""

    def __init__(self, folder: Path) -> None:
        self._filler = folder / "filler"

    def leave(self, n_bytes: int) -> None:
        """Take all but some bytes."""
        for _ in range(20):
            self.give_back()
            free = os.statvfs(self._filler.parent)
            taken = free.f_bavail * free.f_frsize - n_bytes
            try:
                with open(self._filler, "wb") as file:
                    if taken > 0:
                        os.posix_fallocate(file.fileno(), 0, taken)
            except OSError as error:
                # The service wrote something of its own meanwhile, a snapshot for one.
                if error.errno != errno.ENOSPC:
                    raise
            else:
                return
        raise RuntimeError("the disk has no quiet moment")

    def give_back(self) -> None:
        """Make room again."""
        self._filler.unlink(missing_ok=True)


@dataclass
class _Lessons:
    """Lessons that are never the same, and what became of them."""

    caller: Caller
    n_features: int
    found: Fullness
    number: int = 0

    def __post_init__(self) -> None:
        self._drawn = photograph(0, width=96, height=64)
        self._rng = np.random.default_rng(0)

    def vector(self) -> Body:
        row = self._rng.normal(size=self.n_features).astype(np.float32)
        return embedding_body(row, f"class {self.number % 5}")

    def picture(self) -> Body:
        return picture_body(different(self._drawn, self.number), f"class {self.number % 5}")

    def taught(self, body: Body) -> Reply:
        """Teach; another answer than "taught" and "no room" is wrong."""
        self.number += 1
        return self.again(body)

    def again(self, body: Body) -> Reply:
        """The last lesson once more, with its key."""
        reply = self.caller.teach(body, f"lesson-{self.number}")
        self.found.n_taught += reply.status == 201
        if reply.status not in (201, 507) or (reply.status == 507 and not reply.json()["detail"]):
            self.found.wrong.append(f"teaching gave {reply.status}: {reply.content[:200]!r}")
        return reply


def filled_up(
    disk: Path, rooms: Sequence[int] = ROOMS, *, features: object, n_features: int | None = None
) -> Fullness:
    """Teach until the disk is full, with every room at first, and again when there is room."""
    folder = disk / "workspace"
    tokens = new_workspace(folder, features=features, n_features=n_features)
    found, filler = Fullness(), FullDisk(disk)
    log = Path(tempfile.gettempdir(), f"evergrow-disk-full-{os.getpid()}.log")
    with ServiceProcess(folder, RATE, log=log) as service:
        caller = Caller(service.port, tokens.teach)
        lessons = _Lessons(caller, tokens.n_features, found)
        lessons.taught(lessons.vector())
        for room in rooms:
            for kind in (lessons.vector, lessons.picture):
                filler.leave(room * PAGE)
                refused = _until_full(lessons, kind)
                found.wrong += _left_aside(folder)
                question = embeddings_body(np.zeros((1, tokens.n_features), dtype=np.float32))
                asked = caller.predict(question)
                if asked.status != 200:
                    found.wrong.append(f"a prediction on a full disk gave {asked.status}")
                filler.give_back()
                if refused is not None and lessons.again(refused).status != 201:
                    found.wrong.append(f"refused with room again after {room} pages")
        caller.close()
        service.stop()
    log.unlink()
    n_there = len(contents_of(folder))
    if n_there != found.n_taught:
        found.wrong.append(f"{found.n_taught} lessons were acknowledged, {n_there} are there")
    found.wrong += damage_in(folder)
    return found


def _until_full(lessons: _Lessons, kind: Callable[[], Body]) -> Body | None:
    for _ in range(MOST_LESSONS):
        body = kind()
        status = lessons.taught(body).status
        if status == 507:
            lessons.found.n_full += 1
            return body
        if status != 201:
            return None
    lessons.found.wrong.append(f"{MOST_LESSONS} lessons did not fill the disk")
    return None


def _left_aside(folder: Path) -> list[str]:
    return [f"left behind: {path.name}" for path in folder.rglob(".evergrow-*")]
