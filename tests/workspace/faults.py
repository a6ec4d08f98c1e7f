"""Faults at chosen steps: the n-th write to disk kills the process or finds the disk full."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from evergrow.workspace import Workspace
from tests.harness.process import end_if_stuck

# Everything by which files change, but for what SQLite does itself.
WRITING = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "COMMIT")
CALLS = ("fsync", "fdatasync", "pwrite", "posix_fallocate", "replace", "mkdir", "unlink", "chmod")


class FaultInjector:
    """Counts disk operations and triggers a fault before the n-th."""

    def __init__(self, fault_at: int, trigger: Callable[[], None]) -> None:
        self.n_done = 0
        self._fault_at = fault_at
        self._trigger = trigger

    def step(self) -> None:
        """Count an operation that is about to run."""
        self.n_done += 1
        if self.n_done == self._fault_at:
            self._trigger()

    def before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a call so that it is counted before it runs."""

        def counted(*values: Any, **options: Any) -> Any:
            self.step()
            return call(*values, **options)

        return counted


@contextmanager
def inject_faults(
    injector: FaultInjector, connection: sqlite3.Connection | None = None
) -> Iterator[None]:
    """Within the block, count every file operation, and every write through a connection."""
    patches = [
        mock.patch.object(os, name, injector.before(getattr(os, name)))
        for name in CALLS
        if hasattr(os, name)
    ]
    if connection is not None:
        connection.set_trace_callback(lambda text: text.startswith(WRITING) and injector.step())
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def killed_at(folder: Any, act: Callable[[Workspace], object], step: int) -> bool:
    """Open a workspace in another process, act, die before a step; True if it was not reached."""
    child = os.fork()
    if child == 0:
        end_if_stuck()
        # Nothing of the test's process may run in its copy, whatever happens.
        try:
            injector = FaultInjector(step, lambda: os.kill(os.getpid(), signal.SIGKILL))
            workspace = Workspace.open(folder)
            with inject_faults(injector, workspace._store.database.writer):
                act(workspace)
            workspace.close()
        except BaseException:  # noqa: BLE001
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    assert os.WEXITSTATUS(status) == 0
    return True


def killed_at_creation(folder: Any, step: int) -> bool:
    """Make a workspace in another process and die before a step; True if it was not reached."""
    child = os.fork()
    if child == 0:
        end_if_stuck()
        injector = FaultInjector(step, lambda: os.kill(os.getpid(), signal.SIGKILL))
        try:
            with inject_faults(injector):
                Workspace.create(folder, features=None)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return not os.WIFSIGNALED(status)


def full() -> None:
    """The error of a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")
