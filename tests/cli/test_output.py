"""Tables on a terminal, tab-separated lines elsewhere."""

import os
import subprocess
import sys

import pytest

from evergrow.cli.output import write_table
from tests.cli.conftest import terminal
from tests.vision.classifier.pictures import folder_of

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


def test_an_empty_table_has_its_headings(monkeypatch, capsysbinary):
    monkeypatch.setenv("COLUMNS", "80")
    write_table({"name": "left", "scope": "left"}, [])
    assert written(capsysbinary)[0].split() == ["name", "scope"]


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
    os.chdir(photos)
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
