"""A service as people run it: its own process, started, watched, stopped and killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

__all__ = ["ServiceDiedError", "ServiceProcess", "free_port", "small_disk"]

# A service on a busy machine, with the network to load; what takes longer hangs.
READY_SECONDS = 120.0
STOP_SECONDS = 60.0
# Between two looks whether the service answers; short beside everything measured.
_PAUSE_SECONDS = 0.005


class ServiceDiedError(RuntimeError):
    """The service ended by itself; the message has the end of its log."""


def free_port() -> int:
    """A port of the loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ServiceProcess:
    """``evergrow serve FOLDER`` in a session of its own.

    Parameters
    ----------
    folder : path
        The workspace.
    options : sequence of str
        Further options of the command.
    log : path or None
        Where its output goes; beside the workspace if None. Not within it: a full disk would
        take the log too.
    environment : mapping or None
        Added to this process's environment.
    """

    def __init__(
        self,
        folder: Path,
        options: Sequence[str] = (),
        *,
        log: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self.log = folder.with_name(f"{folder.name}.log") if log is None else log
        self._command = [sys.executable, "-m", "evergrow", "serve", str(folder)]
        self._command += ["--port", str(self.port), *options]
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._children: list[psutil.Process] = []

    def __enter__(self) -> Self:
        self.start()
        self.wait_ready()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.running:
            self.kill()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Begin; the service answers only after :meth:`wait_ready`."""
        assert not self.running
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=self._environment,
            )

    def wait_ready(self) -> float:
        """Seconds until the workspace is open and answers."""
        begun = time.perf_counter()
        while not self.ready():
            if not self.running:
                raise ServiceDiedError(self._last_words())
            if time.perf_counter() - begun > READY_SECONDS:
                raise TimeoutError(f"not ready after {READY_SECONDS:g} s: {self._last_words()}")
            time.sleep(_PAUSE_SECONDS)
        return time.perf_counter() - begun

    def ready(self) -> bool:
        """Whether it takes requests now."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """End it as a power failure would, at once."""
        assert self._process is not None
        self._children = self.children()
        self._process.kill()
        self._process.wait()

    def stop(self) -> float:
        """Ask it to end, and the seconds that it took."""
        assert self._process is not None
        begun = time.perf_counter()
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        if code not in (0, -signal.SIGTERM):
            raise ServiceDiedError(f"exit status {code}: {self._last_words()}")
        return time.perf_counter() - begun

    def children(self) -> list[psutil.Process]:
        """Processes that it started and that still run."""
        try:
            return list(psutil.Process(self.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return []

    def orphans(self, seconds: float = 10.0) -> list[psutil.Process]:
        """Children of the killed service that outlive it by some time."""
        end = time.perf_counter() + seconds
        while (alive := [child for child in self._children if _works(child)]) and (
            time.perf_counter() < end
        ):
            time.sleep(_PAUSE_SECONDS)
        return alive

    def memory(self) -> int:
        """Bytes of memory that the service and its children hold and share with nobody."""
        total = 0
        for process in [psutil.Process(self.pid), *self.children()]:
            with _gone_is_fine():
                total += process.memory_full_info().uss
        return total

    def processor_seconds(self) -> float:
        """Processor time that the service and its children have used."""
        total = 0.0
        for process in [psutil.Process(self.pid), *self.children()]:
            with _gone_is_fine():
                times = process.cpu_times()
                total += times.user + times.system
        return total

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


def _works(process: psutil.Process) -> bool:
    """Whether a process still runs: one that ended stays in the table until someone asks."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    try:
        yield
    except psutil.NoSuchProcess:
        return


@contextmanager
def small_disk(folder: Path, n_bytes: int) -> Iterator[Path]:
    """A disk of a few bytes at a folder, in memory.

    Raises
    ------
    PermissionError
        Where this user may not mount anything.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise PermissionError("there is no command mount") from error
    if done.returncode:
        raise PermissionError(f"cannot mount a tmpfs: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
