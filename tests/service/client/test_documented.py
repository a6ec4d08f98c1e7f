"""The examples of the client in the documentation run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.service.client.stub import TOKEN, Stub

DOCS = Path(__file__).parents[3] / "docs"
ADDRESS = "http://127.0.0.1:8080"


def examples() -> list[str]:
    """The pieces of Python that ask a service at the usual address."""
    texts = [(DOCS / name).read_text(encoding="utf-8") for name in ("workspace.md", "service.md")]
    found = re.findall(r"```python\n(.*?)```", "\n".join(texts), re.DOTALL)
    return [code for code in found if ADDRESS in code]


def test_there_are_examples_on_both_pages() -> None:
    assert len(examples()) == 2


@pytest.mark.parametrize("code", examples())
def test_the_examples_of_the_client_run(
    code: str, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVERGROW_TOKEN", TOKEN)
    for name in ("cup", "what", "a", "b"):
        (tmp_path / f"{name}.jpg").write_bytes(name.encode())
    exec(compile(code.replace(ADDRESS, stub.url), "docs", "exec"), {"token": TOKEN})
    assert len(stub.taught) == 1
