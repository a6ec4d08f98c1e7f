"""The group of all commands, which reports errors, warnings and interruptions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from typing import Any

import click

from evergrow.foundation.errors import EvergrowError
from evergrow.foundation.formatting import printable

_INTERRUPTED = 130
# Problems with the input, with files and with missing packages. Any other exception is a bug.
_EXPECTED = (EvergrowError, OSError, ImportError)
# What other programs call a command.
_OTHER_NAMES = {
    "train": "fit",
    "update": "add",
    "classify": "predict",
    "test": "evaluate",
    "remove": "forget",
    "teach": "learn",
    "start": "serve",
}
# Commands of the package evergrow-papers, which a checkout has.
_PAPERS = ("experiment", "download")


class _InternalError(click.ClickException):
    """A bug: an exception that is neither refused input nor a problem of the system."""

    exit_code = 3


class Commands(click.Group):
    """A group whose commands end with a one-line message and an exit code.

    The help lists the commands in sections.

    Attributes
    ----------
    sections : dict
        The commands by the title of their section.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sections: dict[str, list[click.Command]] = {}

    def add_to_section(self, title: str, command: click.Command, summary: str) -> None:
        """Add a command to a section of the help, with a summary of one line."""
        command.short_help = summary
        self.add_command(command)
        self.sections.setdefault(title, []).append(command)

    def add_from_package(self, title: str, entry: EntryPoint) -> None:
        """Add a command of another package; one that does not fit Evergrow says so when called."""
        if entry.name in self.commands:
            return
        try:
            command: click.Command = entry.load()
        except (AttributeError, ImportError) as error:
            why = f"'evergrow {entry.name}' does not fit this version of Evergrow: {error}"
            command = _command_that_fails(entry.name, why)
        self.add_to_section(title, command, command.get_short_help_str(limit=100))

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections; summaries are wrapped, not cut."""
        # All sections have the second column at the same place.
        width = max(len(name) for name in self.commands)
        for title, commands in self.sections.items():
            rows = [(str(each.name).ljust(width), str(each.short_help)) for each in commands]
            with formatter.section(title):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; the error about one that does not exist names what it is called here."""
        meant = _OTHER_NAMES.get(args[0])
        if meant is not None and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {meant!r}?")
        if args[0] in _PAPERS and args[0] not in self.commands:
            ctx.fail(
                f"'evergrow {args[0]}' is in the package evergrow-papers: run "
                "'pip install ./papers' in a checkout of Evergrow."
            )
        return super().resolve_command(ctx, args)

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


def _command_that_fails(name: str, why: str) -> click.Command:
    @click.command(name, context_settings={"ignore_unknown_options": True}, help=why)
    @click.argument("arguments", nargs=-1)
    def fail(arguments: tuple[str, ...]) -> None:  # noqa: ARG001
        raise click.ClickException(why)

    return fail


def _message_for(error: Exception) -> click.ClickException:
    # Notes say what to do.
    text = _one_line("; ".join([_explain(error), *getattr(error, "__notes__", ())]))
    if isinstance(error, MemoryError):
        return click.ClickException(f"out of memory: {text}" if text else "out of memory")
    if isinstance(error, _EXPECTED):
        return click.ClickException(text)
    return _InternalError(
        f"internal error ({type(error).__name__}: {text}); this is a bug in Evergrow, "
        "'evergrow --debug ...' shows the traceback"
    )


def _explain(error: Exception) -> str:
    """The message of an error; of an error of the system without its number."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return error.strerror if error.filename is None else f"{error.strerror}: {error.filename!r}"


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
