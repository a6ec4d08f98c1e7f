"""How errors, warnings and interruptions reach the person at the terminal."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from evergrow.foundation.errors import ClusterError

__all__ = ["Commands"]

_INTERRUPTED = 130
# What the library raises about data, models and missing packages; all else is a fault of its own.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, ClusterError)


class Commands(click.Group):
    """A group whose commands end with a sentence and an exit code, never with a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            with _warnings_in_one_line():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(_INTERRUPTED)
        except BrokenPipeError:
            # Whoever reads has enough, as "head" does: Click ends quietly.
            raise
        except MemoryError as error:
            if ctx.params.get("traceback"):
                raise
            reason = f": {error}" if str(error) else ""
            raise click.ClickException(f"there is not enough memory{_one_line(reason)}") from error
        except _EXPECTED as error:
            if ctx.params.get("traceback"):
                raise
            raise click.ClickException(_one_line(str(error))) from error


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        click.echo(f"Warning: {_one_line(str(message))}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def _one_line(message: str) -> str:
    # Messages quote names of files, which may hold what a terminal obeys.
    from evergrow.foundation.naming import printable

    return printable(" ".join(message.splitlines()))
