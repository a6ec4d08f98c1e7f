"""learn: lessons of an exported page are learnt once; a file that is not valid changes nothing."""

import hashlib
import json
from base64 import b64encode

import pytest

from evergrow.workspace import Workspace
from tests.cli.workspace.conftest import N_PICTURES, counts
from tests.vision.classifier.pictures import folder_of


def lesson(path, label, number):
    content = path.read_bytes()
    return {
        "key": f"{number:032x}",
        "label": label,
        "at": "2026-01-01T00:00:00.000Z",
        "sha256": hashlib.sha256(content).hexdigest(),
        "picture": b64encode(content).decode(),
    }


@pytest.fixture
def lessons(tmp_path):
    """Three lessons of a new class."""
    paths = sorted(folder_of(tmp_path / "photos", "blue", n=3, seed=50).rglob("*.png"))
    found = [lesson(path, "blue", number) for number, path in enumerate(paths)]
    return {"format": "evergrow-lessons", "version": 1, "page": "a" * 32, "lessons": found}


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "lessons.json"
        text = content if isinstance(content, (str, bytes)) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_lessons_are_learnt_once(run, things, lessons, write):
    result = run.ok(f"learn {things} {write(lessons)}")
    assert "Taught 3 images in" in result.stderr
    assert counts(things)["blue"] == 3
    again = run.ok(f"learn {things} {write(lessons)}")
    assert "Taught 0 images in" in again.stderr
    assert "3 already known" in again.stderr
    assert counts(things)["blue"] == 3


def test_a_file_that_grew_brings_its_new_lessons(run, things, lessons, write):
    first = {**lessons, "lessons": lessons["lessons"][:1]}
    run.ok(f"learn {things} {write(first)}")
    assert "Taught 2 images in" in run.ok(f"learn {things} {write(lessons)}").stderr
    assert counts(things)["blue"] == 3


def test_lessons_that_were_undone_are_not_learnt_again(run, things, lessons, write):
    run.ok(f"learn {things} {write(lessons)}")
    run.ok(f"undo {things}")
    assert "blue" not in counts(things)
    run.ok(f"learn {things} {write(lessons)}")
    assert "blue" not in counts(things)


def test_a_lesson_that_was_moved_on_the_page_moves_with_the_option(run, things, lessons, write):
    run.ok(f"learn {things} {write(lessons)}")
    lessons["lessons"][0]["label"] = "navy"
    stayed = run.ok(f"learn {things} {write(lessons)}")
    assert "use --move to move them" in stayed.stderr
    assert counts(things)["blue"] == 3
    run.ok(f"learn {things} {write(lessons)} --move")
    assert (counts(things)["blue"], counts(things)["navy"]) == (2, 1)


def test_the_pictures_are_stored(run, things, lessons, write):
    run.ok(f"learn {things} {write(lessons)}")
    with Workspace.open(things, read_only=True) as workspace:
        stored = [one.image for one in workspace.examples(label="blue").items]
    assert sorted(stored) == sorted(one["sha256"] for one in lessons["lessons"])


def test_no_lessons_teach_nothing(run, things, lessons, write):
    run.ok(f"learn {things} {write({**lessons, 'lessons': []})}")
    assert counts(things) == {"green": N_PICTURES, "red": N_PICTURES}


def changed(lessons, **entries):
    """The same file with other entries in its last lesson."""
    last = {**lessons["lessons"][-1], **entries}
    return {**lessons, "lessons": [*lessons["lessons"][:-1], last]}


def picture_of(content):
    encoded = b64encode(content).decode()
    return {"picture": encoded, "sha256": hashlib.sha256(content).hexdigest()}


HOSTILE = {
    "is not JSON": lambda _: b"\xff\xfe{",
    "nested": lambda _: b"[" * 100_000,
    "format": lambda lessons: {**lessons, "format": "other"},
    "has version 2, and": lambda lessons: {**lessons, "version": 2},
    "entries": lambda lessons: {**lessons, "more": 1},
    "must have the entries": lambda lessons: {**lessons, "lessons": {}},
    "more than 10000": lambda lessons: {**lessons, "lessons": [1] * 10_001},
    "same key": lambda lessons: changed(lessons, key=lessons["lessons"][0]["key"]),
    "two entries of the same name": lambda lessons: json.dumps(lessons)[:-1] + ', "page": "b"}',
    "NaN": lambda lessons: json.dumps({**lessons, "page": float("nan")}),
    "lesson 3 must have": lambda lessons: changed(lessons, path="../../etc/passwd"),
    "label of lesson 3": lambda lessons: changed(lessons, label=7),
    "hexadecimal": lambda lessons: changed(lessons, key="../key"),
    "64 hexadecimal": lambda lessons: changed(lessons, sha256="0"),
    "must be a time": lambda lessons: changed(lessons, at="x" * 1000),
    "lesson 3: ": lambda lessons: changed(lessons, label="a\u202eb"),
    "picture of lesson 3": lambda lessons: changed(lessons, picture="***"),
    "it is empty": lambda lessons: changed(lessons, **picture_of(b"")),
    "another hash": lambda lessons: changed(lessons, picture=b64encode(b"other").decode()),
    "the picture of lesson 3": lambda lessons: changed(lessons, **picture_of(b"not a picture")),
}


@pytest.mark.parametrize("reason", HOSTILE)
def test_a_hostile_file_is_refused_and_nothing_changed(run, things, lessons, write, reason):
    before = counts(things)
    result = run(f"learn {things} {write(HOSTILE[reason](lessons))}")
    assert result.exit_code == 1
    assert reason in result.stderr
    assert "Traceback" not in result.stderr
    assert counts(things) == before


def test_pictures_that_cannot_be_read_are_left_out_with_the_option(run, things, lessons, write):
    first, *others = lessons["lessons"]
    bad = {**first, **picture_of(b"not a picture")}
    path = write({**lessons, "lessons": [bad, *others]})
    assert "--on-error skip" in run(f"learn {things} {path}").stderr
    result = run.ok(f"learn {things} {path} --on-error skip")
    assert "skipped the picture of lesson 1" in result.stderr
    assert "Taught 2 images in" in result.stderr
    again = run.ok(f"learn {things} {write(lessons)}")
    assert "Taught 1 image in" in again.stderr
    assert "2 already known" in again.stderr


def test_a_file_that_is_too_large_is_refused(run, things, lessons, write, monkeypatch):
    from evergrow.workspace.changes import lessons as module

    monkeypatch.setattr(module, "_MOST_BYTES", 1 << 10)
    assert "larger than" in run(f"learn {things} {write(lessons)}").stderr
    assert "blue" not in counts(things)


def test_options_of_folders_are_refused(run, things, lessons, write):
    result = run(f"learn {things} {write(lessons)} --fine")
    assert result.exit_code == 2
    assert "takes no options for folders" in result.stderr
