"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

MODEL = click.argument("model", type=click.Path())
FOLDER = click.argument("folder", type=click.Path())


def _checked_jobs(_: click.Context, __: click.Parameter, value: int) -> int:
    if value == 0:
        raise click.BadParameter("must be a number of threads, or -1 for one per processor")
    return value


JOBS = click.option(
    "--jobs",
    type=click.IntRange(-1, 1 << 10),
    callback=_checked_jobs,
    default=-1,
    help="Number of threads; -1 for one per processor. Results do not depend on it.",
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="No progress bars and no summary.")
FORCE = click.option("--force", is_flag=True, help="Replace the output if it exists.")
ON_ERROR = click.option(
    "--on-error",
    type=click.Choice(["raise", "skip"]),
    default="raise",
    help="Stop at an image that cannot be read, or skip it with a warning.",
)
OUTPUT = click.option(
    "-o", "--output", type=click.Path(), help="Write to this file instead of changing the model."
)


def verbosity(quiet: bool) -> int:
    """Return 1 to show progress bars: only on a terminal, and not with ``--quiet``."""
    return int(not quiet and sys.stderr.isatty())


def examples(*lines: str) -> str:
    """Format examples for the end of a help text, one per line."""
    # Click joins lines unless they start with this character.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def command(*lines: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command, whose help ends with these examples."""
    return click.command(epilog=examples(*lines))
