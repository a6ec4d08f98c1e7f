"""The command line as a whole: help, exit codes, speed, a real process."""

import importlib
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from click.testing import CliRunner

import evergrow
from evergrow.cli import main
from evergrow.cli.group import _OTHER_NAMES, Commands
from evergrow.cli.output import write_table
from evergrow.vision import ImageClassifier
from tests.cli.conftest import terminal
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
    for title in ("Models from folders of images:", "Workspaces:", "Service:", "Comparisons:"):
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


WIDTHS = pytest.mark.parametrize("columns", [80, 120])


def written(capsysbinary):
    return capsysbinary.readouterr().out.decode().splitlines()


def test_numbers_are_aligned_to_the_right_under_their_headings(monkeypatch, capsysbinary):
    monkeypatch.setenv("COLUMNS", "80")
    write_table({"class": "left", "images": "right"}, [("cat", 4), ("guinea pig", 120), (None, 1)])
    assert written(capsysbinary) == [
        "class       images",
        "------------------",
        "cat              4",
        "guinea pig     120",
        "                 1",
    ]


@WIDTHS
def test_a_table_is_as_wide_as_the_terminal_at_most(monkeypatch, capsysbinary, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    name = "photos/" + "long" * 40
    write_table(
        {"image": "left", "class": "left", "share": "right"}, [(name, "[red] :smile:", "7%")]
    )
    lines = written(capsysbinary)
    assert max(map(len, lines)) == columns
    # Text is wrapped, not cut, and is no markup.
    assert "".join(line.split()[0] for line in lines[2:]) == name
    assert "[red] :smile:  " in lines[2]
    assert lines[2].endswith("7%")


def test_a_narrow_terminal_keeps_names_and_numbers(monkeypatch, capsysbinary):
    monkeypatch.setenv("COLUMNS", "20")
    numbers = ("images", "right", "wrong", "unknown", "recall", "precision")
    columns = {"class": "left", **dict.fromkeys(numbers, "right")}
    write_table(columns, [("background and more", 8, 5, 3, 0, "62.5%", "100.0%")])
    lines = written(capsysbinary)
    assert lines[0].split() == ["class", *numbers]
    assert lines[2].split() == ["background", "8", "5", "3", "0", "62.5%", "100.0%"]
    assert lines[3] == "and more"


def test_control_characters_stay_in_their_cell(monkeypatch, capsysbinary):
    monkeypatch.setenv("COLUMNS", "80")
    write_table({"": "left", " ": "left"}, [("two\nlines", "\x1b[31m")])
    assert written(capsysbinary) == ["two\\nlines  \\x1b[31m"]


@WIDTHS
@pytest.mark.parametrize(
    ("line", "headings"),
    [
        ("evaluate {model} {photos}", "class images right wrong unknown recall precision"),
        ("info {model}", "class images"),
        ("predict {model} {photos}", "image class probability"),
    ],
)
def test_a_terminal_gets_headings_and_percents(
    run, trained, photos, monkeypatch, columns, line, headings
):
    terminal(monkeypatch, columns)
    line = line.format(model=trained, photos=photos)
    table = run.ok(line).stdout
    assert headings.split() in [each.split() for each in table.splitlines()]
    assert max(map(len, table.splitlines())) <= columns
    assert "\t" not in table
    lines = run.ok(f"{line} --tsv").stdout
    monkeypatch.undo()
    monkeypatch.chdir(photos)
    assert run.ok(line).stdout == lines
    assert "\t" in lines


@pytest.mark.slow
def test_a_real_terminal_gets_a_table(trained, photos):
    pty = pytest.importorskip("pty")
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "evergrow", "evaluate", str(trained), str(photos)]
    done = subprocess.run(
        command,
        check=False,
        stdout=child,
        stderr=subprocess.PIPE,
        env=os.environ | {"COLUMNS": "80"},
    )
    os.close(child)
    assert done.returncode == 0, done.stderr
    text = os.read(parent, 1 << 16).decode()
    os.close(parent)
    assert "Mean class accuracy  100.0%" in text


def test_classes_are_in_the_order_of_people(run, tmp_path):
    for number in ("10", "9", "1"):
        folder_of(tmp_path / "drawn", "red", "green", n=1, seed=int(number))
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "drawn" / "red").rename(tmp_path / "photos" / number)
    run.ok("fit photos -o m.evergrow --features hsl")
    for line in ("info m.evergrow", "evaluate m.evergrow photos"):
        lines = [each.split("\t") for each in run.ok(line).stdout.splitlines()]
        assert [fields[1] for fields in lines if fields[0] == "class"] == ["1", "9", "10"]


@pytest.mark.parametrize("forms", ["--csv --json", "--json --csv", "--tsv --csv"])
def test_two_forms_exclude_each_other(run, trained, photos, forms):
    first, second = forms.split()
    run.fails(
        f"predict {trained} {photos} {forms}",
        code=2,
        says=f"{first} and {second} exclude each other",
    )


def test_a_command_of_another_package_that_does_not_fit_says_so():
    group = Commands("evergrow", commands={"fit": main.commands["fit"]})
    for name in ("fit", "repeat"):
        group.add_from_package("Papers", EntryPoint(name, "evergrow.no_such:command", "commands"))
    assert group.commands["fit"] is main.commands["fit"]
    result = CliRunner().invoke(group, ["repeat", "--quick", "now"])
    assert result.exit_code == 1
    assert "'evergrow repeat' does not fit this version of Evergrow" in result.output
