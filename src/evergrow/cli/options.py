"""Arguments and options that several commands share."""

from __future__ import annotations

import sys

import click

__all__ = [
    "FOLDER",
    "FORCE",
    "JOBS",
    "MODEL",
    "ON_ERROR",
    "QUIET",
    "examples",
    "other_output",
    "verbosity",
]

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
    show_default=True,
    help="Threads; -1 for one per processor. Results do not depend on it.",
)
QUIET = click.option(
    "-q", "--quiet", is_flag=True, help="No progress bars and no word about what was done."
)
FORCE = click.option("--force", is_flag=True, help="Replace the output if it is there already.")
ON_ERROR = click.option(
    "--on-error",
    type=click.Choice(["raise", "skip"]),
    default="raise",
    show_default=True,
    help="Stop at an image that cannot be read, or leave it out with a warning.",
)
other_output = click.option(
    "-o", "--output", type=click.Path(), help="Write to this file and leave the model as it is."
)


def verbosity(quiet: bool) -> int:
    """Progress bars are for people who look."""
    return int(not quiet and sys.stderr.isatty())


def examples(*lines: str) -> str:
    """Examples below the help of a command, one per line."""
    # Click joins lines unless they begin with this character.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
