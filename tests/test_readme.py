"""What the README shows works as shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_readmes_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    example = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    exec(compile(example[1], "README.md", "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    assert float(shown[0]) >= 0.95
    assert any("nearest of" in line for line in shown)
    assert (tmp_path / "digits.evergrow").is_file()


def test_the_readmes_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).is_file(), target
