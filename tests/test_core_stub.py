"""The typed stub of the core names what the compiled module has, no more and no less."""

from __future__ import annotations

import ast
from pathlib import Path

import evergrow
from evergrow import _core

STUB = ast.parse((Path(evergrow.__file__).parent / "_core.pyi").read_text())


def names_in(body: list[ast.stmt]) -> set[str]:
    return {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def public(names: list[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def test_the_stub_lists_every_public_name_of_the_core() -> None:
    assert names_in(STUB.body) == public(dir(_core))


def test_the_stub_lists_every_public_member_of_the_cores_classes() -> None:
    for node in STUB.body:
        if isinstance(node, ast.ClassDef):
            members = {name for name in names_in(node.body) if not name.startswith("_")}
            assert members == public(dir(getattr(_core, node.name))), node.name
