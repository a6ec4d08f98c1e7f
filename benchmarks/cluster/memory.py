"""Private memory of processes while they work, and what names a forest."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import psutil

__all__ = ["PeakMemory", "anonymous_bytes", "digest_of", "ray_workers"]

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
    """Processes of this machine in which Ray runs tasks."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if process.info["cmdline"] and process.info["cmdline"][0].startswith("ray::")
    ]


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
        """The most that any of the processes that were there before has grown."""
        return max((self.peak.get(pid, 0) - size for pid, size in self.before.items()), default=0)

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
