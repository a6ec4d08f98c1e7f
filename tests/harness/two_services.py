"""Two services on one workspace by every trick: no acknowledged example may be lost.

A first service is taught. Then the trick is played on its folder, a second service is started, and
both are taught as far as they accept it. Both are killed in the end. Every acknowledged example
must be in the folder that the service had opened, wherever it is then, and ``check`` must find no
damage.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.harness.http_client import LOST, Caller, embedding_body
from tests.harness.process import NO_RATE_LIMIT, ServiceDiedError, ServiceProcess, bind_mount
from tests.harness.teaching_clients import row_digest
from tests.harness.workspaces import Contents, Tokens, find_damage, new_workspace, read_contents

N_FEATURES = 8
N_CLIENTS = 2
DATABASE = "examples.sqlite"
_MOST_SECONDS = 20.0
# The second service believes that it has every lock, as on a file system without locks.
_WITHOUT_LOCKS = """
from evergrow.foundation import locks
locks._try_lock = lambda descriptor: True
from evergrow.cli import main
main()
"""


@dataclass
class Scene:
    """The folders of a trick; it may change them."""

    # Where the first service was started.
    folder: Path
    # Where the folder is in the end that the first and the second service opened.
    first: Path
    second: Path
    # Where the second service is started.
    path: Path
    cleanup: ExitStack
    without_locks: bool = False
    # Run after both services were killed, as the message of the refusal says.
    recover: list[Callable[[], object]] = field(default_factory=list)


@dataclass(frozen=True)
class Duel:
    """What came of one trick."""

    trick: str
    # Examples that the first service acknowledged before the trick and after it, and the second.
    n_before: int
    n_first: int
    n_second: int
    # Whether the second service started; its last words if not.
    second_started: bool
    second_says: str
    n_lost: int
    damage: tuple[str, ...]
    # Responses other than "taught" and "not available".
    failures: tuple[str, ...]


class _Teacher(threading.Thread):
    """Teaches new vectors until it is told to stop; nothing is retried."""

    def __init__(self, port: int, token: str, number: int) -> None:
        super().__init__(daemon=True)
        # Where the tokens were moved with the folder, no token is valid.
        self.refused: tuple[int, ...] = ()
        self._port, self._token, self._number = port, token, number
        self._ending = threading.Event()
        self.acknowledged: Contents = {}
        self.failures: list[str] = []

    def run(self) -> None:
        rng = np.random.default_rng([23, self._port, self._number])
        with closing(Caller(self._port, self._token)) as caller:
            while not self._ending.is_set():
                row = rng.normal(size=N_FEATURES).astype(np.float32)
                label = f"class {rng.integers(5)}"
                try:
                    reply = caller.teach(embedding_body(row, label))
                except LOST:
                    time.sleep(0.02)
                    continue
                if reply.status == 201:
                    self.acknowledged[int(reply.json()["example"]["id"])] = (label, row_digest(row))
                elif reply.status not in (503, *self.refused):
                    self.failures.append(f"{reply.status} {reply.content[:300]!r}")
                    time.sleep(0.02)

    def end(self) -> None:
        self._ending.set()
        self.join()


def _remove(*names: str) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        for name in names:
            (scene.folder / name).unlink(missing_ok=True)

    return play


def _move(scene: Scene) -> None:
    scene.path = scene.first = scene.second = scene.folder.with_name("moved")
    scene.folder.rename(scene.path)


def _link(scene: Scene) -> None:
    scene.path = scene.folder.with_name("link")
    scene.path.symlink_to(scene.folder)


def _mount(scene: Scene) -> None:
    scene.path = scene.folder.with_name("mounted")
    scene.cleanup.enter_context(bind_mount(scene.folder, scene.path))


def _copy(scene: Scene) -> None:
    scene.path = scene.second = scene.folder.with_name("copy")
    _copy_served(scene.folder, scene.path)


def _link_files(scene: Scene) -> None:
    scene.path = scene.second = scene.folder.with_name("linked")
    shutil.copytree(scene.folder, scene.path, copy_function=os.link)
    (scene.path / "lock").unlink()
    # Without the second names the first service can be started again.
    scene.recover.append(lambda: shutil.rmtree(scene.path))
    scene.second = scene.folder


def _replace_folder(scene: Scene) -> None:
    _copy_served(scene.folder, scene.folder.with_name("copy"))
    scene.first = scene.folder.with_name("moved")
    scene.folder.rename(scene.first)
    scene.folder.with_name("copy").rename(scene.folder)


def _replace_database(scene: Scene) -> None:
    database, former = scene.folder / DATABASE, scene.folder.with_name("former.sqlite")
    shutil.copy(database, scene.folder / "newer")
    os.replace(database, former)
    os.replace(scene.folder / "newer", database)
    scene.recover.append(lambda: os.replace(former, database))


def _forget_locks(scene: Scene) -> None:
    scene.without_locks = True


TRICKS: dict[str, Callable[[Scene], None]] = {
    "nothing but a second start": lambda _: None,
    "lock file removed": _remove("lock"),
    "lock file and index of the log removed": _remove("lock", f"{DATABASE}-shm"),
    "write-ahead log removed": _remove(f"{DATABASE}-wal"),
    "folder moved": _move,
    "path through a link": _link,
    "bind mount": _mount,
    "folder copied while served": _copy,
    "folder copied by hard links": _link_files,
    "folder renamed, a copy in its place": _replace_folder,
    "database file replaced": _replace_database,
    "file system without locks": _forget_locks,
}


def duel(parent: Path, trick: str, *, seconds: float = 1.0) -> Duel:
    """Play a trick on a new workspace in an empty folder.

    Raises
    ------
    PermissionError
        If this user may not mount anything, for the trick that needs it.
    """
    folder = parent / "workspace"
    tokens = new_workspace(folder, n_features=N_FEATURES)
    with ExitStack() as cleanup:
        scene = Scene(folder, folder, folder, folder, cleanup)
        first = cleanup.enter_context(ServiceProcess(folder, NO_RATE_LIMIT))
        with _teaching(first.port, tokens) as taught_first:
            _teach_for(seconds, taught_first)
            n_before = _count(taught_first)
            for teacher in taught_first:
                teacher.refused = (401,) if trick == "folder moved" else ()
            TRICKS[trick](scene)
            time.sleep(seconds / 4)
            second = ServiceProcess(scene.path, NO_RATE_LIMIT, log=parent / "second.log")
            if scene.without_locks:
                second.run_with(_WITHOUT_LOCKS)
            cleanup.enter_context(_killed_at_end(second))
            started = _start(second)
            with _teaching(second.port, tokens) as taught_second:
                if started:
                    _teach_for(seconds, taught_second)
                # Not the polite way: everything acknowledged must be on disk already.
                first.kill()
                if second.running:
                    second.kill()
    for step in scene.recover:
        step()
    lost = _count_lost(scene.first, taught_first) + _count_lost(scene.second, taught_second)
    return Duel(
        trick,
        n_before,
        _count(taught_first) - n_before,
        _count(taught_second),
        started,
        "" if started else _last_line(parent / "second.log"),
        lost,
        tuple(line for place in {scene.first, scene.second} for line in find_damage(place)),
        tuple(line for one in (*taught_first, *taught_second) for line in one.failures),
    )


def _teach_for(seconds: float, teachers: Sequence[_Teacher]) -> None:
    """Wait some seconds, on a busy computer until one example was acknowledged."""
    until = time.monotonic() + _MOST_SECONDS
    time.sleep(seconds)
    while not _count(teachers) and time.monotonic() < until:
        time.sleep(0.05)


def _copy_served(source: Path, target: Path) -> None:
    """Copy a folder that is written to; files that come and go are left out."""

    def copy(path: str, to: str) -> None:
        if Path(path).exists():
            shutil.copy(path, to)

    shutil.copytree(source, target, copy_function=copy)


@contextmanager
def _teaching(port: int, tokens: Tokens) -> Iterator[Sequence[_Teacher]]:
    teachers = [_Teacher(port, tokens.teach, number) for number in range(N_CLIENTS)]
    for teacher in teachers:
        teacher.start()
    try:
        yield teachers
    finally:
        for teacher in teachers:
            teacher.end()


@contextmanager
def _killed_at_end(service: ServiceProcess) -> Iterator[None]:
    try:
        yield
    finally:
        if service.running:
            service.kill()


def _start(service: ServiceProcess) -> bool:
    service.start()
    try:
        service.wait_ready()
    except ServiceDiedError:
        return False
    return True


def _count(teachers: Sequence[_Teacher]) -> int:
    return sum(len(one.acknowledged) for one in teachers)


def _count_lost(folder: Path, teachers: Sequence[_Teacher]) -> int:
    if not _count(teachers):
        return 0
    found = read_contents(folder)
    return sum(
        found.get(number) != sent for one in teachers for number, sent in one.acknowledged.items()
    )


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
