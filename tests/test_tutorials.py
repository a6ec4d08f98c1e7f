"""The tutorials print what they show, one step after the other, on the pictures of the demo."""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from evergrow.cli import main
from tests.harness.process import ServiceProcess

pytestmark = pytest.mark.slow
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


def curl_commands(page: str) -> list[str]:
    text = "\n".join(blocks_of(page, "console"))
    return re.findall(r"^\$ (curl (?:.*\\\n)*.*)$", text, re.MULTILINE)


def run_shell(command: str) -> str:
    return subprocess.run(
        ["bash", "-c", command], check=True, capture_output=True, text=True, timeout=60
    ).stdout


def test_photographs(folder: Path) -> None:
    accuracies, answers = [], []
    # The last section is about photographs that only the reader has.
    for block in blocks_of("tutorial_photographs", "console")[:-1]:
        shown = ""
        for line in block.splitlines():
            if line.startswith("$ evergrow"):
                shown = run_evergrow(line.removeprefix("$ "))
            elif line.startswith(("$ mkdir", "$ cp")):
                run_shell(line.removeprefix("$ "))
            elif found := re.search(r"^Accuracy +([\d.]+)%", line):
                measured = re.search(r"^accuracy\t([\d.]+)", shown, re.MULTILINE)
                assert measured is not None
                accuracies.append((float(found[1]), 100 * float(measured[1])))
            elif found := re.search(r"\d+ classes, \d+ images", line):
                assert found[0] in shown
            elif found := re.match(r"(demo_pictures/\S+)  (\w+)", line):
                answers.append((found[1], found[2], shown))
    assert len(accuracies) == 3
    for told, found_now in accuracies:
        assert told == pytest.approx(found_now, abs=POINTS)
    assert len(answers) == 7
    for path, label, shown in answers:
        assert f"{path}\t{label}" in shown
    unknown = run_evergrow("evergrow predict strict.evergrow demo_pictures/rare/umbrella")
    assert unknown.count("unknown") > 30


def test_features(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(blocks_of("tutorial_features", "python"))
    exec(compile(text, "tutorial_features.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    groups = re.findall(r"print\(.*\)\n((?:# .*\n)+)", text)
    told = [line.removeprefix("# ") for group in groups for line in group.splitlines()]
    # The path through a tree depends on the instruction set, as accuracies do.
    steps = [line for line in printed if re.match(r"node|leaf", line)]
    assert re.fullmatch(r"leaf \d+: '\w+': \d+.*", steps[-1])
    assert {re.sub(r"'\w+'|[\d.]+", "", line) for line in steps[:-1]} == {
        f"node : nearest of  means is  at , goes {side}" for side in ("left", "right")
    }
    told, printed = ([x for x in y if not re.match(r"node|leaf", x)] for y in (told, printed))
    assert len(told) == 17
    for one, other in zip(told, printed, strict=True):
        assert re.sub(r"[\d.]+%", "%", one) == re.sub(r"[\d.]+%", "%", other)
        if shares := re.findall(r"[\d.]+(?=%)", one):
            found = float(re.findall(r"[\d.]+(?=%)", other)[0])
            assert float(shares[0]) == pytest.approx(found, abs=POINTS)
    assert (folder / "features.evergrow").is_file()


def test_camera(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_evergrow("evergrow init things --token-file token --quiet")
    for part, name, n in (("more", "cup", 10), ("more", "star", 10), ("rare", "umbrella", 1)):
        (folder / "taught" / name).mkdir(parents=True)
        for path in sorted((folder / "demo_pictures" / part / name).iterdir())[:n]:
            shutil.copy(path, folder / "taught" / name)
    run_evergrow("evergrow learn things taught --quiet")
    shutil.copy(folder / "demo_pictures/test/cup/25.jpg", folder / "what.jpg")
    (robot,) = blocks_of("tutorial_camera", "python")
    asks, teaches = curl_commands("tutorial_camera")
    with ServiceProcess(folder / "things") as service:
        here = f"127.0.0.1:{service.port}"
        assert '"label":"cup"' in run_shell(asks.replace("127.0.0.1:8080", here))
        assert '"class":{"name":"cup","n_examples":11,"new":false}' in run_shell(
            teaches.replace("127.0.0.1:8080", here)
        )
        robot = robot.replace("127.0.0.1:8080", here)
        exec(compile(robot, "tutorial_camera.md", "exec"), {})
        answer, *classes = capsys.readouterr().out.splitlines()
        assert answer.startswith("This is cup")
        assert classes == ["cup 11", "star 10", "umbrella 1"]
        # The other way through the program, whatever the answer is.
        shutil.copy(folder / "demo_pictures/first/boat/00.jpg", folder / "what.jpg")
        exec(compile(robot.replace("answer.label is None", "True"), "robot.py", "exec"), {})
        answer, *classes = capsys.readouterr().out.splitlines()
        assert answer.startswith("I don't know this. The most similar class is ")
        assert "new thing 1" in classes
