"""What the README shows works as shown."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def _examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_readmes_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _, first, second, _ = _examples()
    exec(compile(first, "README.md", "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    assert float(shown[0]) >= 0.95
    assert any("nearest of" in line for line in shown)
    assert (tmp_path / "digits.evergrow").is_file()
    exec(compile(second, "README.md", "exec"), {})
    before, after = capsys.readouterr().out.splitlines()
    assert "-1" in before
    assert after.count("9") > 5


def test_the_readmes_example_on_folders_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(README.parent / "examples")
    write_pictures = importlib.import_module("pictures").write_pictures
    write_pictures(tmp_path / "photos", ["house", "fish"], range(6))
    write_pictures(tmp_path / "more_photos", ["cup"], range(6))
    write_pictures(tmp_path / "test_photos", ["house", "fish", "cup"], range(25, 28))
    exec(compile(_examples()[0], "README.md", "exec"), {})
    score, answer = capsys.readouterr().out.splitlines()
    assert float(score) > 0.6
    assert answer == "['cup']"


def test_the_readmes_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).is_file(), target
