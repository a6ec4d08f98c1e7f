"""What the README shows works as shown."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
PHOTOGRAPHS, FEATURES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_example_on_features_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(FEATURES, "README.md", "exec"), {})
    classes, score = capsys.readouterr().out.rsplit(maxsplit=1)
    assert classes == "[0 1 2 3 4 5 6 7 8 9]"
    assert float(score) > 0.9


@pytest.mark.slow
def test_the_example_on_folders_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(README.parent / "examples")
    write_pictures = importlib.import_module("pictures").write_pictures
    write_pictures(tmp_path / "photos", ["house", "fish"], range(6))
    write_pictures(tmp_path / "more_photos", ["cup"], range(6))
    write_pictures(tmp_path / "test_photos", ["house", "fish", "cup"], range(25, 28))
    exec(compile(PHOTOGRAPHS, "README.md", "exec"), {})
    score, answer = capsys.readouterr().out.splitlines()
    assert float(score) > 0.6
    assert answer == "['cup']"


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (README.parent / target).is_file(), target
