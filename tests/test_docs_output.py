"""The console output that the docs show is what the commands print."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evergrow.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *(f"docs/{name}.md" for name in ("command_line", "service", "shards")))
PAGES += (
    "docs/export_page.md",
    "docs/workspace.md",
    "docs/planning.md",
    "docs/compare.md",
    "docs/cluster.md",
    "docs/export.md",
    "docs/formats.md",
    "docs/tutorial_camera.md",
    "docs/tutorial_photographs.md",
)

CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
# What differs from run to run: counts, other numbers, quoted names, paths, tokens.
VARIABLE = re.compile(
    r"\d+ (?:class|example|image|row|shard)(?:e?s)?\b|'[^']*'|\S*[\d/…]\S*|\w+\.\w+"
)
HOLE = "\0"


def shown_lines(page: str) -> Iterator[tuple[str, str]]:
    """Each line of output that is a sentence, with its command; tables and JSON are data."""
    for block in CONSOLE.findall((ROOT / page).read_text("utf-8")):
        command = ""
        # A command may go on in the next line.
        for line in block.replace("\\\n", "").splitlines():
            if re.match(r"\w*[$#] ", line):
                command = line
            elif command.startswith("$ evergrow") and not re.search(r"^[{.]|\t|\S  ", line):
                yield command, line


def fixed_words(command: str, line: str) -> list[str]:
    """The pieces of a line between names, numbers and words of the command."""
    # Tokens are printed with what they allow.
    words = {*re.findall(r"\w+", command), *main.commands, "teach", "read"} - {"evergrow"}
    names = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b")
    pieces = names.sub(HOLE, VARIABLE.sub(HOLE, line)).split(HOLE)
    return [piece.strip(" :,.") for piece in pieces if re.search(r"[a-z]{2}", piece)]


def printed() -> str:
    """All text literals of the package, with a hole where a value is inserted."""
    found: list[str] = []
    for path in (ROOT / "src" / "evergrow").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (getattr(part, "value", HOLE) for part in node.values)
                found.append("".join(part if isinstance(part, str) else HOLE for part in parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                # Messages are single lines; docstrings of several lines are not printed.
                found.append(node.value if "\n" not in node.value else "")
    return "\n".join(found)


@pytest.fixture(scope="module")
def source() -> str:
    return printed()


@pytest.mark.parametrize("page", PAGES)
def test_shown_output_has_the_words_of_the_source(page: str, source: str) -> None:
    unknown = [
        (line, piece)
        for command, line in shown_lines(page)
        for piece in fixed_words(command, line)
        if not re.search(rf"(?<!\w){re.escape(piece)}(?!\w)", source)
    ]
    assert unknown == []


def test_outdated_output_is_noticed(source: str) -> None:
    assert sum(1 for page in PAGES for _ in shown_lines(page)) > 15
    for line in (
        "things: sound.",
        "Learnt 120 images: 2.1 s for features.",
        "TeachResult 3 images",
    ):
        pieces = fixed_words("$ evergrow check things", line)
        assert not all(re.search(rf"\b{re.escape(piece)}\b", source) for piece in pieces), line
