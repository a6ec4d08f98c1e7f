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
from evergrow.foundation.formatting import format_count, list_names, natural_order, suggest

if TYPE_CHECKING:
    from evergrow.workspace import ClassEntry, Workspace


_PAGE = 500
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
        with _suggest_classes(workspace):
            yield workspace
    finally:
        with delay_interrupt():
            workspace.close()


@contextmanager
def read_workspace(path: str) -> Iterator[Workspace]:
    """Open a workspace for reading, while another process may change it."""
    from evergrow.workspace import Workspace

    with Workspace.open(path, read_only=True) as workspace, _suggest_classes(workspace):
        yield workspace


def all_classes(workspace: Workspace) -> Iterator[ClassEntry]:
    """All classes of a workspace, in the order of their first examples."""
    after: str | None = None
    while True:
        page = workspace.classes(after=after, limit=_PAGE)
        yield from page.items
        if page.next is None:
            return
        after = page.next


@contextmanager
def _suggest_classes(workspace: Workspace) -> Iterator[None]:
    """Add similar names, or all, to the error about a class that does not exist."""
    from evergrow.workspace import NoSuchClassError

    try:
        yield
    except NoSuchClassError as error:
        entries = list(all_classes(workspace))
        names = sorted((entry.name for entry in entries), key=natural_order)
        fine = [one.name for entry in entries for one in entry.fine]
        error.add_note(suggest(error.name, [*names, *fine]) or _list_classes(names))
        raise


def _list_classes(names: list[str]) -> str:
    return f"the classes are {list_names(names)}" if names else "there are no classes yet"


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
