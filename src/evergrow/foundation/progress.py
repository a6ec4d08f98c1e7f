"""Progress bars for long work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    description: str, total: int, verbose: int
) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar on standard error during the block, if ``verbose`` is positive.

    The description is shown with a capital letter. Yields a function that takes
    the number of finished items, or None if no bar is shown.
    """
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, *times, console=Console(stderr=True)) as progress:
        task = progress.add_task(description[:1].upper() + description[1:], total=total)
        yield lambda done: progress.update(task, completed=done)
        progress.update(task, completed=total)
