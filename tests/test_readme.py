"""What the README shows works as shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_readmes_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = re.findall(
        r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
    )
    exec(compile(first, "README.md", "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    assert float(shown[0]) >= 0.95
    assert any("nearest of" in line for line in shown)
    assert (tmp_path / "digits.evergrow").is_file()
    exec(compile(second, "README.md", "exec"), {})
    before, after = capsys.readouterr().out.splitlines()
    assert "-1" in before
    assert after.count("9") > 5


def test_the_readmes_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).is_file(), target
