"""learn: class folders become examples, repeated calls add nothing, and Ctrl-C loses nothing."""

import hashlib
import json
import os
import signal
from base64 import b64encode

import pytest

from evergrow.workspace import Workspace
from tests.cli.workspace.conftest import N_PICTURES, counts
from tests.vision.classifier.pictures import folder_of

pytestmark = pytest.mark.slow


def test_folders_become_classes(run, things, tmp_path):
    photos = folder_of(tmp_path / "photos", "blue", "red", n=3, seed=50)
    result = run.ok(f"learn {things} {photos}")
    assert counts(things) == {"green": N_PICTURES, "red": N_PICTURES + 3, "blue": 3}
    lines = result.stderr.splitlines()
    assert lines[0].startswith("Taught 6 images in ")
    assert lines[1] == f"To undo all of it: evergrow undo {things}"
    assert lines[2] == f"{things}: 3 classes, {2 * N_PICTURES + 6} examples."


def test_learning_again_learns_nothing_twice(run, things, tmp_path):
    photos = folder_of(tmp_path / "photos", "blue", n=3)
    run(f"learn {things} {photos}")
    folder_of(photos, "blue", n=4)
    result = run(f"learn {things} {photos}")
    assert "Taught 1 image in" in result.stderr
    assert "3 already known" in result.stderr
    assert counts(things)["blue"] == 4


def test_folders_within_are_finer_names(run, things, tmp_path):
    folder_of(tmp_path / "photos" / "colour", "blue", "grey", n=2)
    folder_of(tmp_path / "photos", "colour", n=0)
    run.ok(f"learn {things}", tmp_path / "photos", "--fine")
    with Workspace.open(things, read_only=True) as workspace:
        entry = workspace.class_named("colour")
    assert {fine.name: fine.n_given for fine in entry.fine} == {"blue": 2, "grey": 2}


def test_a_mistaken_learn_is_taken_back_at_once(run, things, tmp_path):
    before = counts(things)
    result = run(f"learn {things}", folder_of(tmp_path / "photos", "blue", "red", n=3, seed=50))
    (way_back,) = [line for line in result.stderr.splitlines() if "evergrow undo" in line]
    result = run.ok(*way_back.split("evergrow ")[1].split())
    assert "Undone: 6 examples of 2 classes removed" in result.stderr
    assert counts(things) == before


def test_images_of_another_class_stay_there_unless_moved(run, things, tmp_path):
    photos = folder_of(tmp_path / "photos", "blue", n=3)
    run.ok(f"learn {things} {photos}")
    (photos / "blue").rename(photos / "navy")
    result = run.ok(f"learn {things} {photos}")
    assert "3 images already in other classes stayed there: 'blue' (3); use --move" in result.stderr
    assert "navy" not in counts(things)
    result = run.ok(f"learn {things} {photos} --move")
    assert "Taught 0 images" in result.stderr
    assert "3 moved from other classes" in result.stderr
    assert counts(things)["navy"] == 3
    assert "3 examples of 'blue' moved back" in run.ok(f"undo {things}").stderr
    assert counts(things)["blue"] == 3


def test_names_that_differ_by_case_are_asked_about(run, things, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", n=2, seed=50)
    (photos / "red").rename(photos / "Red")
    run.fails(f"learn {things} {photos}", says="'red' differs only by case or spaces")
    assert "Red" not in counts(things)
    told = run.ok(f"learn {things} {photos} --yes").stderr
    assert counts(things)["Red"] == 2
    assert told.endswith("New class: 'Red'.\n")


def test_new_classes_are_named_and_those_nearly_known_are_asked_about(run, things, tmp_path):
    photos = folder_of(tmp_path / "photos", "blue", "grey", n=1, seed=50)
    (photos / "grey").rename(photos / "greeen")
    told = run.ok(f"learn {things} {photos}").stderr
    asked = "'greeen' is new; did you mean the known class 'green'? If so, 'evergrow merge' joins"
    assert f"New classes: 'blue', 'greeen'.\nWarning: {asked} both\n" in told
    assert "New class" not in run.ok(f"learn {things} {photos}").stderr


def test_known_pictures_get_finer_names(run, things, tmp_path):
    photos = folder_of(tmp_path / "photos", "blue", n=5)
    run(f"learn {things} {photos}")
    for n in range(4):
        folder = photos / "blue" / ("sky" if n < 2 else "sea")
        folder.mkdir(exist_ok=True)
        (photos / "blue" / f"{n}.png").rename(folder / f"{n}.png")
    result = run(f"learn {things} {photos} --fine")
    assert "Taught 0 images in" in result.stderr
    assert "5 already known, 4 of them with a new fine class." in result.stderr
    run.ok(f"split {things} blue")
    (photos / "blue" / "sky").rename(photos / "blue" / "ice")
    result = run(f"learn {things} {photos} --fine")
    assert "2 images already had another fine class and kept it" in result.stderr
    with Workspace.open(things, read_only=True) as workspace:
        fine = workspace.class_named("blue").fine
    assert {one.name: one.n_given for one in fine} == {"sky": 2, "sea": 2}


def test_a_bad_image_stops_and_keeps_what_was_taught(run, things, tmp_path, monkeypatch):
    monkeypatch.setattr("evergrow.workspace.changes.image_batches._MOST_IMAGES", 2)
    photos = folder_of(tmp_path / "photos", "blue", n=4)
    (photos / "blue" / "2.png").write_text("no image")
    result = run.fails(f"learn {things} {photos} --jobs 1", says="2.png")
    assert "Taught 2 images" in result.stderr
    assert counts(things)["blue"] == 2


def test_bad_images_can_be_left_out(run, things, tmp_path):
    photos = folder_of(tmp_path / "photos", "blue", n=3)
    (photos / "blue" / "bad.jpg").write_text("no image")
    content = (photos / "blue" / "1.png").read_bytes()
    (photos / "blue" / "1.png").write_bytes(content[: len(content) // 2])
    result = run.ok(f"learn {things} {photos} --on-error skip")
    assert counts(things)["blue"] == 2
    assert [line.split(":")[0] for line in result.stderr.splitlines()].count("Warning") == 2
    assert "2 skipped" in result.stderr


def test_ctrl_c_keeps_what_was_taught(run, things, tmp_path, monkeypatch):
    monkeypatch.setattr("evergrow.workspace.changes.image_batches._MOST_IMAGES", 2)
    photos = folder_of(tmp_path / "photos", "blue", n=6)
    real, calls = Workspace.teach, []

    def interrupted(self, examples, **options):
        calls.append(len(examples))
        if len(calls) == 2:
            # It comes in the middle of a change, and waits for its end.
            os.kill(os.getpid(), signal.SIGINT)
        return real(self, examples, **options)

    monkeypatch.setattr(Workspace, "teach", interrupted)
    run.fails(f"learn {things} {photos}", code=130, says="Taught 4 images")
    assert counts(things)["blue"] == 4
    run.ok(f"check {things}")


def test_a_folder_with_a_name_that_cannot_be_is_refused_at_once(run, things, tmp_path):
    folder_of(tmp_path / "photos", "blue", n=1)
    (tmp_path / "photos" / "blue").rename(tmp_path / "photos" / ("x" * 201))
    run.fails(f"learn {things}", tmp_path / "photos", says="at most 200 characters")


def test_a_workspace_of_embeddings_takes_no_folder(run, tmp_path):
    run("init numbers --features none")
    folder_of(tmp_path / "photos", "blue", n=1)
    run.fails("learn numbers photos", says="takes embeddings, not images")


def test_what_a_service_has_is_left_to_the_service(run, things, tmp_path):
    photos = folder_of(tmp_path / "photos", "blue", n=1)
    with Workspace.open(things):
        for arguments in (
            ["learn", things, photos],
            ["rename", things, "red", "rot"],
            ["merge", things, "red", "green"],
            ["split", things, "red"],
            ["unsplit", things, "red"],
            ["undo", things],
            ["forget", things, "red"],
            ["check", things, "--mend"],
        ):
            result = run.fails(*arguments, says="or stop that process first")
            assert str(os.getpid()) in result.stderr
    assert counts(things) == {"green": N_PICTURES, "red": N_PICTURES}


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
