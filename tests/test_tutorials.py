"""The tutorials print what they show, one step after the other, on the pictures of the demo."""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from evergrow.cli import main
from tests.harness.process import ServiceProcess

ROOT = Path(__file__).resolve().parents[1]
# Accuracies depend a little on the instruction set.
POINTS = 3.0


def blocks_of(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What ``make tutorial`` leaves in the folder it is run in."""
    place = tmp_path_factory.mktemp("tutorials")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.syspath_prepend(ROOT / "examples")
        importlib.import_module("pictures").write_parts(place / "demo_pictures")
        yield place


def run_evergrow(command: str) -> str:
    result = CliRunner().invoke(main, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    return result.output


def test_photographs(folder: Path) -> None:
    accuracies, answers = [], []
    # The last section is about photographs that only the reader has.
    for block in blocks_of("tutorial_photographs", "console")[:-1]:
        shown = ""
        for line in block.splitlines():
            if line.startswith("$ evergrow"):
                shown = run_evergrow(line.removeprefix("$ "))
            elif line.startswith("$ mkdir"):
                for name in line.split()[3:]:
                    (folder / name).mkdir(parents=True)
            elif line.startswith("$ cp"):
                pattern, target = line.split()[2:]
                for path in folder.glob(pattern):
                    shutil.copy(path, folder / target)
            elif found := re.search(r"^Accuracy +([\d.]+)%", line):
                measured = re.search(r"^accuracy\t([\d.]+)", shown, re.MULTILINE)
                assert measured is not None
                accuracies.append((float(found[1]), 100 * float(measured[1])))
            elif found := re.search(r"\d+ classes, \d+ images", line):
                assert found[0] in shown
            elif found := re.match(r"(demo_pictures/\S+)  (\w+)", line):
                answers.append((found[1], found[2], shown))
    assert len(accuracies) == 2
    for told, found_now in accuracies:
        assert told == pytest.approx(found_now, abs=POINTS)
    assert len(answers) == 7
    for path, label, shown in answers:
        assert f"{path}\t{label}" in shown
    unknown = run_evergrow("evergrow predict strict.evergrow demo_pictures/rare/umbrella")
    assert unknown.count("unknown") > 30


def test_features(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = blocks_of("tutorial_features", "python")
    exec(compile("\n".join(blocks), "tutorial_features.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    told = re.findall(r"^# (\w+Classifier [\d.]+%)$", "\n".join(blocks), re.MULTILINE)
    measured = [line for line in printed if re.search(r"^\w+Classifier [\d.]+%$", line)]
    assert len(told) == 6
    for one, other in zip(told, measured, strict=True):
        (name, accuracy), (found, value) = one.split(), other.split()
        assert name == found
        assert float(accuracy[:-1]) == pytest.approx(float(value[:-1]), abs=POINTS)
    assert any("nearest of" in line for line in printed)
    assert (folder / "features.evergrow").is_file()


def test_camera(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_evergrow("evergrow init things --token-file token --quiet")
    for name in ("cup", "star"):
        (folder / "taught" / name).mkdir(parents=True)
        for path in sorted((folder / "demo_pictures/more" / name).iterdir())[:5]:
            shutil.copy(path, folder / "taught" / name)
    run_evergrow("evergrow learn things taught --quiet")
    shutil.copy(folder / "demo_pictures/more/cup/09.jpg", folder / "what.jpg")
    (robot,) = blocks_of("tutorial_camera", "python")
    with ServiceProcess(folder / "things") as service:
        robot = robot.replace("127.0.0.1:8080", f"127.0.0.1:{service.port}")
        exec(compile(robot, "tutorial_camera.md", "exec"), {})
        answer, *classes = capsys.readouterr().out.splitlines()
        assert answer.startswith(("This is cup", "I don't know this"))
        assert classes[:2] == ["cup 5", "star 5"]
        # The other way through the program, whatever the answer is.
        exec(compile(robot.replace("answer.label is None", "True"), "robot.py", "exec"), {})
        answer, *classes = capsys.readouterr().out.splitlines()
        assert answer == "I don't know this. The most similar class is cup"
        assert "new thing 1" in classes
