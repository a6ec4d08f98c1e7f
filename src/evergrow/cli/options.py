"""Arguments and options that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import click

from evergrow.foundation.errors import ImageError

MODEL = click.argument("model", type=click.Path())
SOURCE = click.argument("source", type=click.Path())


def _checked_jobs(_: click.Context, __: click.Parameter, value: int) -> int:
    if value == 0:
        raise click.BadParameter("must be a number of threads, or -1 for one per processor")
    return value


JOBS = click.option(
    "--jobs",
    type=click.IntRange(-1, 1 << 10),
    callback=_checked_jobs,
    default=-1,
    help="Number of threads; -1 uses all processors. The result is the same for any number.",
)
NETWORK = click.option(
    "--network",
    default="efficientnet-lite0",
    metavar="NAME|FILE|FOLDER",
    help="Network that embeds images: a known name, an ONNX file, or a folder of Hugging Face "
    "transformers or timm.",
)
QUIET = click.option(
    "-q", "--quiet", is_flag=True, help="Print nothing but results, warnings and errors."
)
FORCE = click.option("--force", is_flag=True, help="Replace the output if it exists.")
ON_ERROR = click.option(
    "--on-error",
    type=click.Choice(["raise", "skip"]),
    default="raise",
    help="Stop if images cannot be read, or skip them with a warning.",
)
NO_FOLLOW_LINKS = click.option(
    "--no-follow-links",
    "follow_links",
    flag_value=False,
    default=True,
    show_default=False,
    help="Count links (symlinks) to images and folders as images that cannot be read.",
)


def _parse_columns(_: click.Context, __: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(","))
    if len(names) != 2 or not all(names):
        raise click.BadParameter("must be two names with a comma between: PATH,LABEL")
    return names


_READING = {
    "split": click.option(
        "--split",
        type=click.Choice(["train", "val", "test", "none"]),
        help="Split of SOURCE to use; none if its folders train and test are classes.",
    ),
    "follow_links": NO_FOLLOW_LINKS,
    "columns": click.option(
        "--columns",
        metavar="PATH,LABEL",
        callback=_parse_columns,
        help="Columns of a table; by default the usual names, such as path and label.",
    ),
    "crop": click.option(
        "--crop", is_flag=True, help="Treat each box of COCO annotations as an image."
    ),
    "images": click.option(
        "--images",
        type=click.Path(),
        metavar="DIR",
        help="Folder of the images that a table or annotations name; by default the folder of "
        "that file.",
    ),
    "outside": click.option(
        "--outside",
        is_flag=True,
        help="Accept absolute paths and paths out of the folder in tables and annotations.",
    ),
}


# What they are if none is given.
DEFAULT_READING: Mapping[str, Any] = {
    "split": None,
    "follow_links": True,
    "columns": None,
    "crop": False,
    "images": None,
    "outside": False,
}


def reads_labelled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how labelled images are read; the parameter ``reading`` has them."""

    @wraps(function)
    def run(*arguments: Any, **values: Any) -> Any:
        reading = {name: values.pop(name) for name in _READING}
        return function(*arguments, reading=reading, **values)

    found: Callable[..., Any] = run
    for option in reversed(_READING.values()):
        found = option(found)
    return found


YES = click.option("-y", "--yes", is_flag=True, help="Answer all questions with yes.")
OUTPUT = click.option(
    "-o", "--output", type=click.Path(), help="Write to this file instead of changing the model."
)


_FORMS = {
    "json": "One JSON object{each}.",
    "csv": "CSV with a header.",
    "tsv": "Tab-separated lines, as in a pipe, instead of a table.",
}


def _choose_form(ctx: click.Context, param: click.Parameter, chosen: bool) -> None:
    before = ctx.params.setdefault("form", None)
    if not chosen:
        return
    if before is not None:
        raise click.UsageError(f"--{before} and --{param.name} exclude each other", ctx)
    ctx.params["form"] = param.name


def output_forms(*names: str, each: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the flags of these forms of output; the parameter ``form`` is the chosen one or None.

    ``each`` says how many JSON objects are written, such as " per image".
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(names):
            function = click.option(
                f"--{name}",
                is_flag=True,
                expose_value=False,
                callback=_choose_form,
                help=_FORMS[name].format(each=each),
            )(function)
        return function

    return add


def verbosity(quiet: bool) -> int:
    """Return 1 to show progress bars: only on a terminal, and not with ``--quiet``."""
    return int(not quiet and sys.stderr.isatty())


def examples(*lines: str) -> str:
    """Format examples for the end of a help text, one per line."""
    # Click joins lines unless they start with this character.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def make_embedder(network: str, **parameters: Any) -> Any:
    """An embedder with the network that ``--network`` names; a folder is converted."""
    from evergrow.vision.embedding import Embedder

    if os.path.isdir(network):
        return Embedder.from_pretrained(network, **parameters)
    return Embedder(network, **parameters)


def _suggest_missing(param: Any, read: Mapping[str, Any], others: list[str]) -> str:
    """Say what is probably meant if a command lacks a parameter, given all that it has."""
    if param.name == "output" and others:
        return f"Did you mean -o {others[0]}?"
    if param.name == "source" and isinstance(read.get("model"), str):
        from evergrow.cli.models import explain_no_model

        return explain_no_model(read["model"])
    return ""


class _Command(click.Command):
    """A command that says how to skip images that cannot be read, if it has the option.

    It also says what is probably meant if an argument is missing.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        given = [*args]
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            read, others, _ = self.make_parser(ctx).parse_args(given)
            hint = _suggest_missing(error.param, read, others)
            raise click.MissingParameter(hint, error.ctx, error.param) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except ImageError as error:
            if ctx.params.get("on_error") == "raise":
                them = "them" if error.more else "it"
                error.add_note(f"use --on-error skip to leave {them} out")
            raise


def command(*lines: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command, whose help ends with these examples."""
    return click.command(cls=_Command, epilog=examples(*lines))
