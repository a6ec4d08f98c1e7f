"""Workspaces as commands open them: to change, or to look at while others change them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from evergrow.workspace import Workspace

__all__ = [
    "DIR",
    "changed_workspace",
    "is_workspace",
    "read_workspace",
    "say_workspace",
    "shielded",
]

DIR = click.argument("folder", metavar="DIR", type=click.Path())


def is_workspace(path: str) -> bool:
    """Whether a path is the folder of a workspace, as 'evergrow init' makes it."""
    from evergrow.workspace.store.layout import is_workspace as has_manifest

    return has_manifest(Path(path))


@contextmanager
def changed_workspace(path: str) -> Iterator[Workspace]:
    """Open a workspace to change it; an error that says what to do if a service has it."""
    from evergrow.workspace import Workspace

    workspace = Workspace.open(path)
    try:
        yield workspace
    finally:
        with shielded():
            workspace.close()


@contextmanager
def read_workspace(path: str) -> Iterator[Workspace]:
    """Open a workspace to look at it, whoever changes it meanwhile."""
    from evergrow.workspace import Workspace

    with Workspace.open(path, read_only=True) as workspace:
        yield workspace


@contextmanager
def shielded() -> Iterator[None]:
    """Let Ctrl-C wait until the block is done: a change is made whole or not at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = False

    def remember(*_: Any) -> None:
        nonlocal interrupted
        interrupted = True

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted:
        raise KeyboardInterrupt


def say_workspace(workspace: Workspace, path: str) -> None:
    """What the workspace knows now, on standard error."""
    from evergrow.cli.said import several
    from evergrow.foundation.naming import printable

    status = workspace.status()
    classes = several(status.n_classes, "class")
    examples = several(status.n_examples, "example")
    click.echo(f"{printable(path)}: {classes}, {examples}.", err=True)
