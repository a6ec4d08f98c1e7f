"""The documentation shows commands that exist, and lists every public name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType

import click
import pytest

import evergrow
from evergrow.cli import main
from tests.test_public_names import ROOMS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "papers/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
# Notes are copied into the pages of results; their links start there.
RESULTS, NOTES = ROOT / "papers/results", ROOT / "papers/evergrow_papers/notes"
LINK = re.compile(r"\]\(<?([^\s#:)>]+)(?:#[^\s:)]*)?[^:)]*\)")
# In a block of code: a command of Evergrow, after a prompt or at the beginning of the line.
COMMAND = re.compile(r"^ *(?:\w*[$#] )?(evergrow (?:.*\\\n)*.*)$", re.MULTILINE)
BLOCK = re.compile(r"^ *```([^\n]*)\n(.*?)^ *``` *$", re.DOTALL | re.MULTILINE)


def commands_of(path: Path) -> Iterator[list[str]]:
    for language, block in BLOCK.findall(path.read_text(encoding="utf-8")):
        for line in COMMAND.findall(block) if language in ("", "console", "bash", "sh") else ():
            words = shlex.split(line.replace("\\\n", " "), comments=True)
            end = next((i for i, word in enumerate(words) if word in ("|", ">")), None)
            yield words[1:end]


COMMANDS = [words for path in PAGES for words in commands_of(path)]


def test_commands_are_found() -> None:
    assert len(COMMANDS) > 100


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_of_the_docs_are_parsed(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # The folder of a network has to be there; other paths are looked at when a command runs.
    (tmp_path / "dinov2-small").mkdir()
    command, rest = main.commands[words[0]], words[1:]
    if isinstance(command, click.Group):
        command = command.commands[rest.pop(0)]
    command.make_context(words[0], rest)


def test_links_between_files_lead_to_a_file() -> None:
    linked = [
        (path, (RESULTS if path.parent == NOTES else path.parent) / link)
        for path in (*PAGES, *RESULTS.glob("*.md"), *NOTES.glob("*.md"))
        for link in LINK.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(linked) > 500
    assert [(path.name, str(link)) for path, link in linked if not link.exists()] == []


@pytest.mark.slow
def test_every_public_class_and_function_is_listed() -> None:
    listed = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/api").glob("*.md"))
    names = set(re.findall(r"~?([\w.]+)$", listed, re.MULTILINE))
    # The module of MLflow imports it.
    missing = "evergrow.mlflow." if find_spec("mlflow") is None else "none"
    described = [_find(n) for n in names if n.startswith("evergrow.") and not n.startswith(missing)]
    for module in (evergrow, *(import_module(f"evergrow.{room}") for room in ROOMS)):
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type | FunctionType):
                assert any(value is one for one in described), f"{module.__name__}.{name}"


def _find(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def test_the_page_of_papers_links_to_every_stored_result() -> None:
    linked = re.findall(
        r"papers/results/([\w-]+)\.md", (ROOT / "docs/papers.md").read_text("utf-8")
    )
    stored = [path.stem for path in RESULTS.glob("*.json")]
    assert {*linked} == {*stored, "index"}
