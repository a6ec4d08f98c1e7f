"""A disk that fills up while examples are taught: clear refusals, no partial changes."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.harness.http_client import (
    Body,
    Caller,
    Reply,
    embedding_body,
    embeddings_body,
    picture_body,
)
from tests.harness.pictures import different, photograph
from tests.harness.process import NO_RATE_LIMIT, ServiceProcess
from tests.harness.workspaces import find_damage, new_workspace, read_contents

PAGE = 4096
# Free pages when teaching begins: each runs out at another step of teaching an example.
FREE_PAGES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 30, 40, 60, 90, 150)
# More examples than fit into any of these.
MAX_EXAMPLES = 5000


@dataclass
class Fullness:
    """What happened on a full disk."""

    n_full: int = 0
    n_taught: int = 0
    # Wrong answers, files left aside, examples lost or half taught, damage.
    wrong: list[str] = field(default_factory=list)


class FullDisk:
    """A file that leaves a given amount of free space on a disk."""

    def __init__(self, folder: Path) -> None:
        self._filler = folder / "filler"

    def leave(self, n_bytes: int) -> None:
        """Fill the disk except for some bytes."""
        for _ in range(20):
            self.release()
            free = os.statvfs(self._filler.parent)
            taken = free.f_bavail * free.f_frsize - n_bytes
            try:
                with open(self._filler, "wb") as file:
                    if taken > 0:
                        os.posix_fallocate(file.fileno(), 0, taken)
            except OSError as error:
                # The service wrote something in the meantime, such as a snapshot.
                if error.errno != errno.ENOSPC:
                    raise
            else:
                return
        raise RuntimeError("the free space of the disk keeps changing")

    def release(self) -> None:
        """Free the space again."""
        self._filler.unlink(missing_ok=True)


@dataclass
class _ExampleSource:
    """Examples that are all different, and the responses to them."""

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

    def teach(self, body: Body) -> Reply:
        """Teach; any other response than "taught" and "disk full" is wrong."""
        self.number += 1
        return self.again(body)

    def again(self, body: Body) -> Reply:
        """Send the last example again, with its key."""
        reply = self.caller.teach(body, f"example-{self.number}")
        self.found.n_taught += reply.status == 201
        if reply.status not in (201, 507) or (reply.status == 507 and not reply.json()["detail"]):
            self.found.wrong.append(f"teaching gave {reply.status}: {reply.content[:200]!r}")
        return reply


def fill_disk(
    disk: Path,
    free_pages: Sequence[int] = FREE_PAGES,
    *,
    features: object,
    n_features: int | None = None,
) -> Fullness:
    """Teach until the disk is full, from each amount of free space, and again with space."""
    folder = disk / "workspace"
    tokens = new_workspace(folder, features=features, n_features=n_features)
    found, filler = Fullness(), FullDisk(disk)
    log = Path(tempfile.gettempdir(), f"evergrow-disk-full-{os.getpid()}.log")
    with ServiceProcess(folder, NO_RATE_LIMIT, log=log) as service:
        caller = Caller(service.port, tokens.teach)
        examples = _ExampleSource(caller, tokens.n_features, found)
        examples.teach(examples.vector())
        for n_pages in free_pages:
            for kind in (examples.vector, examples.picture):
                filler.leave(n_pages * PAGE)
                refused = _until_full(examples, kind)
                found.wrong += _temporary_files(folder)
                question = embeddings_body(np.zeros((1, tokens.n_features), dtype=np.float32))
                asked = caller.predict(question)
                if asked.status != 200:
                    found.wrong.append(f"a prediction on a full disk gave {asked.status}")
                filler.release()
                if refused is not None and examples.again(refused).status != 201:
                    found.wrong.append(
                        f"refused although there was space again, after {n_pages} pages"
                    )
        caller.close()
        service.stop()
    log.unlink()
    n_there = len(read_contents(folder))
    if n_there != found.n_taught:
        found.wrong.append(f"{found.n_taught} examples were acknowledged, {n_there} are there")
    found.wrong += find_damage(folder)
    return found


def _until_full(examples: _ExampleSource, kind: Callable[[], Body]) -> Body | None:
    for _ in range(MAX_EXAMPLES):
        body = kind()
        status = examples.teach(body).status
        if status == 507:
            examples.found.n_full += 1
            return body
        if status != 201:
            return None
    examples.found.wrong.append(f"{MAX_EXAMPLES} examples did not fill the disk")
    return None


def _temporary_files(folder: Path) -> list[str]:
    return [f"left behind: {path.name}" for path in folder.rglob(".evergrow-*")]
