"""The command line as a whole: help, exit codes, speed, a real process."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import evergrow
from evergrow.cli import main
from evergrow.cli.group import _OTHER_NAMES
from evergrow.vision import ImageClassifier
from tests.vision.classifier.pictures import folder_of

COMMAND_LINE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text()
BAD_OPTIONS = [
    ["fit", ".", "-o", "m", "--features", "pixels"],
    ["fit", ".", "-o", "m", "--jobs", "0"],
    ["predict", "m", ".", "--top", "0"],
]


@pytest.mark.parametrize("name", sorted(main.commands))
def test_the_help_of_every_command_has_examples(name):
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert f"\n    evergrow {name} " in result.output
    assert "  -h, --help" in result.output
    assert f"evergrow {name}" in COMMAND_LINE


def test_the_help_lists_each_command_once_in_a_section_and_cuts_nothing(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(main, ["--help"]).output.splitlines()
    assert not any("..." in line for line in lines[1:])
    listed = [line.split()[0] for line in lines if line[:2] == "  " and line[2:17].strip()]
    for name in main.commands:
        assert listed.count(name) == 1
    for title in ("Models from folders of images:", "Workspaces:", "Service:", "Research:"):
        assert title in lines


def test_the_version_is_printed():
    assert evergrow.__version__ in CliRunner().invoke(main, ["--version"]).output


def test_help_needs_no_slow_import():
    code = (
        "import sys; from evergrow.cli import main; main(['fit', '--help'], standalone_mode=False);"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'sklearn', 'PIL', 'rich')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("arguments", [["paint"], ["fit"], ["predict"], *BAD_OPTIONS])
def test_a_command_that_is_not_understood_ends_with_2(run, arguments):
    run.fails(*arguments, code=2)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["train", "photos"], "'fit'"),
        (["fitt", "photos"], "'fit'"),
        (["fit", "photos", "m.evergrow"], "-o m.evergrow"),
    ],
)
def test_a_command_line_that_is_nearly_right_is_asked_about(run, arguments, meant):
    run.fails(*arguments, code=2, says=f". Did you mean {meant}?\n")


def test_names_of_other_programs_are_no_commands_here():
    assert not _OTHER_NAMES.keys() & main.commands.keys()
    assert set(_OTHER_NAMES.values()) <= main.commands.keys()


def test_an_interrupted_command_ends_with_130_and_writes_nothing(run, photos, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ImageClassifier, "fit", interrupt)
    result = run.fails(f"fit {photos} -o m.evergrow", code=130)
    assert result.stderr == "Interrupted.\n"
    assert not Path("m.evergrow").exists()


def test_too_little_memory_is_reported_in_one_line(run, photos, monkeypatch):
    def fail(*_):
        raise MemoryError("561 GiB")

    monkeypatch.setattr(ImageClassifier, "fit", fail)
    result = run.fails(f"fit {photos} -o m.evergrow")
    assert result.stderr == "Error: out of memory: 561 GiB\n"


def test_an_error_of_the_system_is_reported_without_its_number(run, photos, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device", "m.evergrow")

    monkeypatch.setattr(ImageClassifier, "fit", refuse)
    result = run.fails(f"fit {photos} -o m.evergrow")
    assert result.stderr == "Error: No space left on device: 'm.evergrow'\n"


def test_debug_shows_the_traceback(run):
    result = run("--debug fit nowhere -o m.evergrow")
    assert isinstance(result.exception, FileNotFoundError)


def test_an_unexpected_error_is_reported_as_a_bug(run, monkeypatch, model):
    def fail(*_):
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr(importlib.import_module("evergrow.cli.info"), "_described", fail)
    result = run.fails(
        f"info {model}",
        code=3,
        says="internal error (ValueError: operands could not be broadcast together)",
    )
    assert "--debug" in result.stderr
    assert isinstance(run(f"--debug info {model}").exception, ValueError)


@pytest.mark.slow
def test_a_process_trains_and_answers_through_pipes(tmp_path):
    folder_of(tmp_path / "photos", "red", "green", n=2)
    environment = {**os.environ, "LC_ALL": "C"}

    def run_process(line):
        command = [sys.executable, "-m", "evergrow", *line.split()]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    trained = run_process("fit photos -o m.evergrow --features hsl")
    assert (trained.returncode, trained.stdout) == (0, ""), trained.stderr
    # No progress bars without a terminal.
    assert len(trained.stderr.splitlines()) == 2
    (tmp_path / "bad.jpg").write_text("no image")
    asked = run_process("predict m.evergrow photos/red/0.png bad.jpg")
    assert asked.returncode == 1
    assert asked.stdout.startswith("photos/red/0.png\tred\t")
    assert asked.stderr.startswith("Error: 'bad.jpg': ")
