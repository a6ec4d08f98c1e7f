"""Memory and time of processes while they work."""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

_SECONDS_BETWEEN = 0.005


def reset_peak() -> int:
    """Forget the peak so far; return the memory that this process has now."""
    forget = Path("/proc/self/clear_refs")
    if forget.exists():
        forget.write_text("5")
    return int(psutil.Process().memory_info().rss)


def peak_bytes() -> int:
    """The most memory that this process has had, without that of the process which started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = next(line for line in status.read_text().splitlines() if "VmHWM" in line)
    return 1024 * int(line.split()[1])


def processor_seconds(process: psutil.Process | None = None) -> float:
    """Processor time of a process (this one) and of all that it started and that still run."""
    first = process or psutil.Process()
    seconds = 0.0
    for each in (first, *first.children(recursive=True)):
        with suppress(psutil.Error):
            times = each.cpu_times()
            seconds += times.user + times.system
    return seconds


def anonymous_bytes(pid: int) -> int:
    """Private memory of a process that is no part of a file or of memory shared with others."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = [line.split()[1] for line in text.splitlines() if line.startswith("RssAnon")]
    return 1024 * int(found[0]) if found else 0


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
