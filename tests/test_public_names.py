"""The package imports what it names only when asked."""

from __future__ import annotations

import subprocess
import sys

import pytest

import evergrow


@pytest.mark.parametrize("name", evergrow.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(evergrow, name) is not None
    assert name in dir(evergrow)


def test_every_listed_home_is_of_a_public_name() -> None:
    at_once = {*evergrow.errors.__all__, "__version__"}
    assert {*evergrow._HOME_OF, *at_once} == set(evergrow.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'evergrow' has no attribute 'Nobody'"):
        _ = evergrow.Nobody


def test_importing_the_package_does_not_import_scikit_learn() -> None:
    code = "import sys, evergrow; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
