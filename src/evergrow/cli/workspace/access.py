"""Opens workspaces for commands: to change them, or to read them while others change them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.output import report
from evergrow.foundation.formatting import format_count

if TYPE_CHECKING:
    from evergrow.workspace import Workspace


DIR = click.argument("folder", metavar="DIR", type=click.Path())


def is_workspace(path: str) -> bool:
    """Whether a path is the folder of a workspace."""
    from evergrow.workspace.store.layout import is_workspace as has_manifest

    return has_manifest(Path(path))


@contextmanager
def open_workspace(path: str) -> Iterator[Workspace]:
    """Open a workspace for changes; if a service has it open, the error says what to do."""
    from evergrow.workspace import Workspace

    workspace = Workspace.open(path)
    try:
        yield workspace
    finally:
        with delay_interrupt():
            workspace.close()


@contextmanager
def read_workspace(path: str) -> Iterator[Workspace]:
    """Open a workspace for reading, while another process may change it."""
    from evergrow.workspace import Workspace

    with Workspace.open(path, read_only=True) as workspace:
        yield workspace


@contextmanager
def delay_interrupt() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block, so that a change is complete or not made."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = False

    def record(*_: Any) -> None:
        nonlocal interrupted
        interrupted = True

    before = signal.signal(signal.SIGINT, record)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted:
        raise KeyboardInterrupt


def report_workspace(workspace: Workspace, path: str, *, quiet: bool) -> None:
    """Print the numbers of classes and examples on standard error, unless ``quiet``."""
    status = workspace.status()
    classes = format_count(status.n_classes, "class")
    examples = format_count(status.n_examples, "example")
    report(f"{path}: {classes}, {examples}.", quiet=quiet)
