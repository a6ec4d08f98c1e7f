"""A service in its own process: start, watch, stop and kill it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Self

import psutil

# Options for tests: more requests than their clients can send.
NO_RATE_LIMIT = ("--rate", "100000")
# Enough for a busy machine that has to load the network; a longer start hangs.
READY_SECONDS = 120.0
STOP_SECONDS = 60.0
# Runs the command with further arguments of the function that it calls.
_WITH_LIMITS = """
import functools, json, sys
from evergrow.cli import main
from evergrow.service.http import server
server.serve = functools.partial(server.serve, **json.loads(sys.argv.pop(1)))
main()
"""
# Between two checks whether the service is ready; short compared with what is measured.
_PAUSE_SECONDS = 0.005


def end_if_stuck(seconds: int = 60) -> None:
    """End this process, which was just forked, if it takes longer.

    A thread of the parent may have held a lock while it was forked; the child then waits forever.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)


class ServiceDiedError(RuntimeError):
    """The service exited by itself; the message has the end of its log."""


def free_port() -> int:
    """Return a free port of the loopback interface."""
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
    limits : mapping or None
        Arguments of :func:`evergrow.service.serve` that the command does not have.
    log : path or None
        Where its output goes; next to the workspace if None. Not inside it: a full disk would
        truncate the log too.
    """

    def __init__(
        self,
        folder: Path,
        options: Sequence[str] = (),
        *,
        log: Path | None = None,
        limits: dict[str, object] | None = None,
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self.log = folder.with_name(f"{folder.name}.log") if log is None else log
        start = [sys.executable, "-m", "evergrow"]
        if limits is not None:
            start = [sys.executable, "-c", _WITH_LIMITS, json.dumps(limits)]
        self._command = [*start, "serve", str(folder), "--port", str(self.port), *options]
        self._process: subprocess.Popen[bytes] | None = None
        self._children: list[psutil.Process] = []

    def __enter__(self) -> Self:
        self.start()
        self.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        if self.running:
            self.kill()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def run_with(self, program: str) -> None:
        """Start by a Python program that calls the command line itself."""
        arguments = self._command[self._command.index("serve") :]
        self._command = [sys.executable, "-c", program, *arguments]

    def start(self) -> None:
        """Start the process; requests can be served only after :meth:`wait_ready`."""
        assert not self.running
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_ready(self) -> float:
        """Wait until the workspace is open; return the seconds."""
        begun = time.perf_counter()
        while not self.ready():
            if not self.running:
                raise ServiceDiedError(self._end_of_log())
            if time.perf_counter() - begun > READY_SECONDS:
                raise TimeoutError(f"not ready after {READY_SECONDS:g} s: {self._end_of_log()}")
            time.sleep(_PAUSE_SECONDS)
        return time.perf_counter() - begun

    def ready(self) -> bool:
        """Whether it accepts requests."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """Kill it at once, as a power failure would."""
        assert self._process is not None
        self._children = self.children()
        self._process.kill()
        self._process.wait()

    def stop(self) -> float:
        """Ask it to stop; return the seconds that it took."""
        assert self._process is not None
        begun = time.perf_counter()
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        if code not in (0, -signal.SIGTERM):
            raise ServiceDiedError(f"exit status {code}: {self._end_of_log()}")
        return time.perf_counter() - begun

    def children(self) -> list[psutil.Process]:
        """Running child processes."""
        try:
            return list(psutil.Process(self.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return []

    def orphans(self, seconds: float = 10.0) -> list[psutil.Process]:
        """Children of the killed service that still run after some time."""
        end = time.perf_counter() + seconds
        while (alive := [child for child in self._children if _is_running(child)]) and (
            time.perf_counter() < end
        ):
            time.sleep(_PAUSE_SECONDS)
        return alive

    def memory(self) -> int:
        """Bytes of memory that only the service and its children use."""
        total = 0
        for process in [psutil.Process(self.pid), *self.children()]:
            with _ignore_exited():
                total += process.memory_full_info().uss
        return total

    def _end_of_log(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


def _is_running(process: psutil.Process) -> bool:
    """Whether a process still runs and is not a zombie."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def _ignore_exited() -> Iterator[None]:
    try:
        yield
    except psutil.NoSuchProcess:
        return


@contextmanager
def small_disk(folder: Path, n_bytes: int) -> Iterator[Path]:
    """Mount a small disk in memory at a folder.

    Raises
    ------
    PermissionError
        If this user may not mount anything.
    """
    with _mounted(["-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs"], folder):
        yield folder


@contextmanager
def bind_mount(source: Path, folder: Path) -> Iterator[Path]:
    """Mount a folder at another path too; a ``PermissionError`` as in :func:`small_disk`."""
    with _mounted(["--bind", str(source)], folder):
        yield folder


@contextmanager
def _mounted(what: Sequence[str], folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", *what, str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise PermissionError("there is no command mount") from error
    if done.returncode:
        raise PermissionError(f"cannot mount: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
