"""Packages import what they name only when asked."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import evergrow

ROOMS = (
    "compare",
    "distributed",
    "estimators",
    "service",
    "storage",
    "vision",
    "workspace",
)


@pytest.mark.parametrize("name", evergrow.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(evergrow, name) is not None
    assert name in dir(evergrow)


@pytest.mark.slow
@pytest.mark.parametrize("room", ["", *ROOMS])
def test_every_listed_home_is_of_a_public_name(room: str) -> None:
    module = import_module(f"evergrow.{room}".rstrip("."))
    stub = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    listed = [alias.name for node in imports for alias in node.names]
    assert sorted(listed) == sorted(module.__all__)
    assert all(getattr(module, name) is not None for name in listed)


@pytest.mark.parametrize("package", ["evergrow", *(f"evergrow.{room}" for room in ROOMS)])
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=f"^module '{package}' has no attribute 'Missing'$"):
        _ = import_module(package).Missing


def test_importing_the_package_does_not_import_scikit_learn() -> None:
    code = "import sys, evergrow; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
