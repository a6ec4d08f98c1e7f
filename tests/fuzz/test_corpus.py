"""The stored corpus of every format passes through its target: no fault comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import NAMES, target

CORPUS = Path(__file__).parent / "corpus"
# Formats of the service, which is an extra.
_SERVICE = ("form", "lesson")
FILES = [
    pytest.param(path.parent.name, path, id=f"{path.parent.name}-{path.name}")
    for path in sorted(CORPUS.glob("*/*"))
]


@pytest.mark.parametrize(("name", "path"), FILES)
def test_a_stored_input_is_refused_or_works(name: str, path: Path) -> None:
    if name in _SERVICE:
        pytest.importorskip("fastapi")
    target(name).run(path.read_bytes())


def test_every_format_has_a_corpus() -> None:
    assert {path.parent.name for path in CORPUS.glob("*/*")} == set(NAMES)
