"""The page of a command, from the command itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from evergrow.cli import main

_INTRODUCTION = """Commands
========

Each command has a page. ``evergrow COMMAND --help`` shows the same text. The guide
:doc:`/command_line` explains folders and labels, output for programs, and exit codes.
"""


def commands_page() -> str:
    """Return the list of all commands in reStructuredText, in the sections of the help."""
    lines = [_INTRODUCTION]
    for title, commands in main.sections.items():
        lines += [title, "-" * len(title), "", ".. list-table::", "   :widths: 30 70", ""]
        for command in commands:
            lines += [
                f"   * - :doc:`evergrow {command.name} <{command.name}>`",
                f"     - {command.short_help}",
            ]
        lines.append("")
    lines += [".. toctree::", "   :hidden:", ""]
    lines += [f"   {name} <{name}>" for name in main.commands]
    return "\n".join((*lines, ""))


def command_page(name: str) -> str:
    """Return the page of a command in reStructuredText."""
    context = click.Context(main, info_name="evergrow", **main.context_settings)
    return "\n".join(_command(name, main.commands[name], context, underline="="))


def _command(
    name: str, command: click.Command, parent: click.Context, underline: str
) -> Iterator[str]:
    context = click.Context(command, parent, info_name=name)
    title = context.command_path
    yield from (title, underline * len(title), "")
    if not isinstance(command, click.Group):
        yield from (f".. guides:: {title}", "")
    yield from (".. code-block:: text", "")
    yield f"   {title} {' '.join(command.collect_usage_pieces(context))}"
    yield ""
    yield from _text(command.help or "")
    options = [one for one in command.params if isinstance(one, click.Option)]
    if options:
        yield from (".. rubric:: Options", "", f".. program:: {title}", "")
    for option in options:
        yield from _option(option, context)
    yield from _examples(command)
    if isinstance(command, click.Group):
        for part_name, part in command.commands.items():
            yield from _command(part_name, part, context, underline="-")


def _option(option: click.Option, context: click.Context) -> Iterator[str]:
    record = option.get_help_record(context)
    if record is None:
        return
    names, text = record
    # Click says "INTEGER RANGE" where the range follows.
    names = names.removesuffix(" RANGE")
    # Click adds the default and the range in brackets at the end.
    text, _, facts = text.partition("  [")
    yield f".. option:: {names}"
    yield ""
    sentences = [_escaped(text), *(_fact(one) for one in facts.rstrip("]").split("; ") if one)]
    yield f"   {' '.join(sentences)}"
    yield ""


def _fact(fact: str) -> str:
    """Write one of the facts that Click adds: required, the default, or the range."""
    word, colon, value = fact.partition(": ")
    if colon:
        return f"{word.capitalize()}: ``{value}``."
    return "Required." if fact == "required" else f"Range: ``{fact}``."


def _text(text: str) -> Iterator[str]:
    r"""The paragraphs of a help text; those after ``\b`` keep their lines."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            yield from (".. code-block:: text", "")
            yield from (f"   {line}" for line in paragraph.splitlines()[1:])
        else:
            yield _escaped(" ".join(paragraph.split()))
        yield ""


def _examples(command: click.Command) -> Iterator[str]:
    # A command may go on in the next line.
    joined = re.sub(r"\\\n\s*", "", command.epilog or "")
    lines = [line.strip() for line in joined.splitlines()]
    commands = [line for line in lines if line.startswith("evergrow ")]
    if commands:
        yield from (".. rubric:: Examples", "", ".. code-block:: console", "")
        yield from (f"   $ {line}" for line in commands)
        yield ""


def _escaped(text: str) -> str:
    """Text without markup; options and names in capitals are code."""
    text = re.sub(r"([*`|\\]|\w_(?=\W|$))", r"\\\1", text)
    return re.sub(r"(?<![\w`-])(--[a-z][\w-]*)", r"``\1``", text)
