"""The group of all commands, which reports errors, warnings and interruptions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from evergrow.foundation.errors import EvergrowError
from evergrow.foundation.formatting import printable

_INTERRUPTED = 130
# Problems with the input, with files and with missing packages. Any other exception is a bug.
_EXPECTED = (EvergrowError, OSError, ImportError)


class _InternalError(click.ClickException):
    """A bug: an exception that is neither refused input nor a problem of the system."""

    exit_code = 3


class Commands(click.Group):
    """A group whose commands end with a one-line message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            with _warnings_in_one_line():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(_INTERRUPTED)
        except (BrokenPipeError, click.exceptions.Exit, click.exceptions.Abort):
            # The reader of a pipe may stop early, as "head" does: Click ends quietly.
            raise
        except click.ClickException:
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            raise _message_for(error) from error


def _message_for(error: Exception) -> click.ClickException:
    text = _one_line(str(error))
    if isinstance(error, MemoryError):
        return click.ClickException(f"out of memory: {text}" if text else "out of memory")
    if isinstance(error, _EXPECTED):
        return click.ClickException(text)
    return _InternalError(
        f"internal error ({type(error).__name__}: {text}); this is a bug in Evergrow, "
        "'evergrow --debug ...' shows the traceback"
    )


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        click.echo(f"Warning: {_one_line(str(message))}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def _one_line(message: str) -> str:
    # Messages quote file names, which may contain control characters.
    return printable(" ".join(message.splitlines()))
