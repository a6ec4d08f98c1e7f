"""The folders of the C++ core depend on each other in one direction only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CPP = Path(__file__).resolve().parents[1] / "cpp"
SOURCES = sorted(path.relative_to(CPP) for path in CPP.rglob("*.[ch]pp"))
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"(?P<own>[^"]+)"|<(?P<system>[^>]+)>)', re.MULTILINE)


def folder_order() -> list[str]:
    """The folders in the order of the table in cpp/README.md."""
    table = (CPP / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE)


def problems_of(source: Path, text: str, order: list[str]) -> list[str]:
    """What is wrong with the includes of one file, empty if nothing is."""
    folder = source.parts[0]
    if len(source.parts) < 2 or folder not in order:
        return [f"{source} is not in a folder of cpp/README.md"]
    problems = []
    for include in INCLUDE.finditer(text):
        own, system = include["own"], include["system"]
        if system is not None:
            if folder != "bind" and re.match(r"nanobind/|Python\.h|numpy/", system):
                problems.append(f"{source} includes <{system}>: only bind/ may use Python")
            if (CPP / system).is_file():
                problems.append(f"{source} includes <{system}>: own files need quotes")
        elif own.split("/")[0] not in order or not (CPP / own).is_file():
            problems.append(f'{source} includes "{own}", which is not a path from cpp/')
        elif order.index(own.split("/")[0]) > order.index(folder):
            problems.append(f'{source} includes "{own}" of a later folder')
    return problems


def test_every_folder_of_the_table_exists() -> None:
    order = folder_order()
    assert len(order) == len(set(order))
    assert set(order) == {source.parts[0] for source in SOURCES}


@pytest.mark.parametrize("folder", folder_order())
def test_a_folder_includes_only_folders_before_it(folder: str) -> None:
    sources = [source for source in SOURCES if source.parts[0] == folder]
    problems = [
        problem
        for source in sources
        for problem in problems_of(source, (CPP / source).read_text("utf-8"), folder_order())
    ]
    assert problems == []


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("tree/tree.hpp", '#include "grow/grower.hpp"'),
        ("tree/tree.hpp", '#include "tree.hpp"'),
        ("tree/tree.hpp", '#include "../tree/split.hpp"'),
        ("tree/tree.hpp", "#include <tree/split.hpp>"),
        ("tree/tree.hpp", "#include <nanobind/nanobind.h>"),
        ("tree/tree.hpp", "  #  include <Python.h>"),
        ("forest.hpp", ""),
        ("extra/forest.hpp", ""),
    ],
)
def test_a_wrong_include_is_reported(source: str, text: str) -> None:
    assert problems_of(Path(source), text, folder_order())


def test_bind_may_include_python() -> None:
    assert not problems_of(
        Path("bind/module.cpp"), "#include <nanobind/nanobind.h>", folder_order()
    )
