"""Memory and time of processes while they work, and what names a forest."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil

_SECONDS_BETWEEN = 0.005


def anonymous_bytes(pid: int) -> int:
    """Private memory of a process that is no part of a file or of memory shared with others."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = [line.split()[1] for line in text.splitlines() if line.startswith("RssAnon")]
    return 1024 * int(found[0]) if found else 0


def ray_workers() -> list[int]:
    """Processes of a Ray started here in which tasks of ours have run; others wait beside them."""
    return [
        process.pid for process in psutil.Process().children(recursive=True) if _runs_tasks(process)
    ]


def _runs_tasks(process: psutil.Process) -> bool:
    try:
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
        return process.cmdline()[0].startswith("ray::") and "evergrow/_core" in mapped
    except (OSError, psutil.Error, IndexError):
        return False


def processor_seconds() -> float:
    """Processor time of this process and of all that it started and that still run."""
    own = psutil.Process()
    seconds = 0.0
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system
    return seconds


class PeakMemory:
    """The most private memory that each of some processes had while a block ran."""

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        self.processes = processes
        self.before: dict[int, int] = {}
        self.peak: dict[int, int] = {}
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self.before = {pid: anonymous_bytes(pid) for pid in self.processes()}
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()

    @property
    def growth(self) -> int:
        """The most that any process had beyond what it had before, new ones the least of these."""
        least = min(self.before.values(), default=0)
        return max((n - self.before.get(pid, least) for pid, n in self.peak.items()), default=0)

    def _watch(self) -> None:
        while not self._over.wait(_SECONDS_BETWEEN):
            for pid in self.processes():
                self.peak[pid] = max(self.peak.get(pid, 0), anonymous_bytes(pid))


def digest_of(forest: Any) -> str:
    """Names a fitted forest by every array of every tree."""
    core = forest._fitted.forest
    digest = hashlib.sha256()
    for tree in range(len(core)):
        for name, values in sorted(core.tree_arrays(tree).items()):
            digest.update(f"{tree} {name} {values.dtype} {len(values)}\n".encode())
            digest.update(values.tobytes())
    return digest.hexdigest()
