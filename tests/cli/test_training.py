"""fit, add and forget: files that are whole, and errors that say what to do."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

import evergrow
from evergrow import ImageClassifier, NCMForestClassifier
from evergrow.cli.fit import fit
from evergrow.foundation.locks import lock_path, locked
from evergrow.vision.classifier.components import FEATURES, LEARNERS
from tests.cli.conftest import Run
from tests.vision.classifier.pictures import folder_of


def test_the_command_offers_what_the_classifier_takes() -> None:
    choices = {one.name: getattr(one.type, "choices", ()) for one in fit.params}
    assert set(choices["features"]) == set(FEATURES)
    assert set(choices["learner"]) == set(LEARNERS)


def test_fit_writes_a_model_and_nothing_to_standard_output(run: Run, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "red", "green", n=3)
    result = run("fit", photos, "-o", "m.evergrow", "--features", "hsl", "--learner", "forest")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "m.evergrow: 2 classes, 6 images." in result.stderr
    model = evergrow.load("m.evergrow")
    assert model.classes_.tolist() == ["green", "red"]
    assert isinstance(model.learner_, NCMForestClassifier)


def test_photographs_are_embedded_unless_told_otherwise(run: Run, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "red", "green", n=2)
    assert run("fit", photos, "-o", "m.evergrow").exit_code == 0
    assert run("add", "m.evergrow", folder_of(tmp_path / "more", "blue", n=2)).exit_code == 0
    result = run("evaluate", "m.evergrow", folder_of(tmp_path / "test", "blue", n=1, seed=9))
    assert result.stdout.splitlines()[0] == "accuracy\t1.0000\t1\t1"


def test_quiet_says_nothing(run: Run, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "red", n=2)
    result = run("fit", photos, "-o", "m.evergrow", "--features", "hsl", "-q")
    assert (result.exit_code, result.output) == (0, "")


def test_one_seed_gives_one_model(run: Run, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "red", "green", n=3)
    for name, jobs in (("a", 1), ("b", 2)):
        arguments = ["--features", "hsl", "--learner", "forest", "--seed", 5, "--jobs", jobs]
        assert run("fit", photos, "-o", name, *arguments).exit_code == 0
    assert Path("a").read_bytes() == Path("b").read_bytes()


def test_an_output_is_not_replaced_unless_forced(run: Run, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", "red", n=2)
    Path("m.evergrow").write_text("old")
    arguments = ("fit", photos, "-o", "m.evergrow", "--features", "hsl")
    result = run(*arguments)
    assert result.exit_code == 1
    assert "'m.evergrow' exists: use --force to replace it" in result.stderr
    assert Path("m.evergrow").read_text() == "old"
    assert run(*arguments, "--force").exit_code == 0
    assert evergrow.load("m.evergrow").classes_.tolist() == ["red"]


@pytest.mark.parametrize(
    ("output", "message"),
    [("nowhere/m.evergrow", "does not exist"), (".", "it is a folder, name a file")],
)
def test_an_output_that_cannot_be_is_refused_before_training(
    run: Run, output: str, message: str
) -> None:
    result = run("fit", "no such folder", "-o", output)
    assert result.exit_code == 1
    assert message in result.stderr


def test_an_output_folder_that_is_not_writable_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    result = run("fit", "no such folder", "-o", "m.evergrow")
    assert result.exit_code == 1
    assert "its folder is not writable" in result.stderr


def empty(folder: Path) -> None:
    folder.mkdir()


def flat(folder: Path) -> None:
    folder_of(folder.parent / "other", "red", n=1)
    (folder.parent / "other" / "red").rename(folder)


def no_images(folder: Path) -> None:
    (folder / "red").mkdir(parents=True)
    (folder / "red" / "notes.txt").write_text("no image")


def nothing(folder: Path) -> None:
    pass


def a_file(folder: Path) -> None:
    folder.write_text("no folder")


def bad_image(folder: Path) -> None:
    folder_of(folder, "red", n=1)
    (folder / "red" / "bad.jpg").write_text("no image")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (empty, "put the images of each class into a folder of their own"),
        (flat, "put the images of each class into a folder of their own"),
        (no_images, "has images"),
        (nothing, "there is no folder"),
        (a_file, "is not a folder"),
        (bad_image, "bad.jpg"),
    ],
)
def test_a_folder_that_cannot_be_learnt_is_an_error_without_a_traceback(
    run: Run, tmp_path: Path, make: Any, message: str
) -> None:
    make(tmp_path / "photos")
    result = run("fit", "photos", "-o", "m.evergrow", "--features", "hsl")
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert not Path("m.evergrow").exists()


def test_bad_images_can_be_skipped_with_a_warning(run: Run, tmp_path: Path) -> None:
    bad_image(tmp_path / "photos")
    arguments = ["--features", "hsl", "--on-error", "skip"]
    result = run("fit", "photos", "-o", "m.evergrow", *arguments)
    assert result.exit_code == 0
    assert "Warning: 1 image was left out" in result.stderr
    model = evergrow.load("m.evergrow")
    assert model.class_counts_.tolist() == [1]
    # What one command may skip is no matter of the next.
    assert model.on_error == "raise"


def test_names_of_classes_may_hold_anything(run: Run, tmp_path: Path) -> None:
    names = ["red cat", "猫", "two\nlines", 'comma, "quote"']
    for name in names:
        folder_of(tmp_path / "drawn", "red", n=1)
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "drawn" / "red").rename(tmp_path / "photos" / name)
    assert run("fit", "photos", "-o", "m.evergrow", "--features", "hsl").exit_code == 0
    classes = evergrow.load("m.evergrow").classes_.tolist()
    assert sorted(classes) == sorted(["red cat", "猫", "two\\nlines", 'comma, "quote"'])
    assert run("forget", "m.evergrow", "猫", "two\\nlines").exit_code == 0
    assert len(evergrow.load("m.evergrow").classes_) == 2


def test_add_teaches_new_and_known_classes(run: Run, model: Path, tmp_path: Path) -> None:
    more = folder_of(tmp_path / "more", "blue", "red", n=2, seed=70)
    result = run("add", model, more)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "Learned 4 images" in result.stderr
    assert "3 classes, 16 images." in result.stderr
    assert evergrow.load(model).class_counts_.tolist() == [6, 8, 2]
    assert sorted(os.listdir(tmp_path)) == ["model.evergrow", "more"]


def test_add_keeps_the_settings_of_the_model(run: Run, model: Path, tmp_path: Path) -> None:
    before = evergrow.load(model).get_params()
    more = folder_of(tmp_path / "more", "blue", n=1)
    assert run("add", model, more, "--on-error", "skip", "--jobs", 2).exit_code == 0
    assert evergrow.load(model).get_params() == before


def test_add_can_leave_the_model_as_it_is(run: Run, model: Path, tmp_path: Path) -> None:
    before = model.read_bytes()
    more = folder_of(tmp_path / "more", "blue", n=2)
    assert run("add", model, more, "-o", "larger.evergrow").exit_code == 0
    assert model.read_bytes() == before
    assert len(evergrow.load("larger.evergrow").classes_) == 3
    assert run("add", model, more, "-o", "larger.evergrow").exit_code == 1
    assert run("add", model, more, "-o", "larger.evergrow", "--force").exit_code == 0


def test_a_failed_add_leaves_the_file(run: Run, model: Path, tmp_path: Path) -> None:
    before = model.read_bytes()
    bad_image(tmp_path / "more")
    result = run("add", model, "more")
    assert result.exit_code == 1
    assert "bad.jpg" in result.stderr
    assert model.read_bytes() == before
    assert not lock_path(model).exists()


def test_a_file_that_something_else_changed_is_not_overwritten(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = folder_of(tmp_path / "more", "blue", n=1)
    learn = ImageClassifier.partial_fit

    def learn_while_another_saves(self: Any, *arguments: Any) -> Any:
        evergrow.load(model).forget(classes=["red"]).save(model)
        return learn(self, *arguments)

    monkeypatch.setattr(ImageClassifier, "partial_fit", learn_while_another_saves)
    result = run("add", model, more)
    assert result.exit_code == 1
    assert "was changed by another program meanwhile" in result.stderr
    assert evergrow.load(model).classes_.tolist() == ["green"]


def test_two_that_add_at_the_same_time_take_turns(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = folder_of(tmp_path / "more", "blue", n=1)
    waits = threading.Event()
    released = threading.Event()

    def hold() -> None:
        with locked(model, lambda: None):
            held.set()
            waits.wait(30)
            evergrow.load(model).forget(classes=["red"]).save(model)
            released.set()

    held = threading.Event()
    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(30)
    monkeypatch.setattr("evergrow.cli.models.click.echo", lambda *_, **__: waits.set())
    assert run("add", model, more, "-q").exit_code == 0
    other.join()
    assert released.is_set()
    assert evergrow.load(model).classes_.tolist() == ["green", "blue"]


def test_one_that_waited_holds_the_lock_that_others_see(model: Path) -> None:
    waits = threading.Event()
    seen = []

    def wait() -> None:
        with locked(model, waits.set):
            seen.append(lock_path(model).exists())

    other = threading.Thread(target=wait)
    with locked(model, lambda: None):
        other.start()
        assert waits.wait(30)
    other.join()
    assert seen == [True]
    assert not lock_path(model).exists()


def test_one_that_is_interrupted_while_it_waits_leaves_the_lock_to_its_holder(model: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with locked(model, lambda: None):
        with pytest.raises(KeyboardInterrupt), locked(model, interrupt):
            pass
        assert lock_path(model).exists()
    assert not lock_path(model).exists()


def test_a_lock_that_was_left_behind_does_not_block(run: Run, model: Path, tmp_path: Path) -> None:
    lock_path(model).touch()
    more = folder_of(tmp_path / "more", "blue", n=1)
    assert run("add", model, more).exit_code == 0
    assert not lock_path(model).exists()


def test_forget_takes_a_class_out(run: Run, model: Path) -> None:
    result = run("forget", model, "red")
    assert result.exit_code == 0
    assert "1 class, 6 images." in result.stderr
    assert evergrow.load(model).classes_.tolist() == ["green"]


@pytest.mark.parametrize(
    ("classes", "message"),
    [(["pink"], "unknown classes ['pink']"), (["red", "green"], "forget would leave no class")],
)
def test_what_cannot_be_forgotten_leaves_the_file(
    run: Run, model: Path, classes: list[str], message: str
) -> None:
    before = model.read_bytes()
    result = run("forget", model, *classes)
    assert result.exit_code == 1
    assert message in result.stderr
    assert model.read_bytes() == before


def test_classes_that_are_numbers_are_forgotten_by_their_digits(run: Run, trained: Path) -> None:
    model = evergrow.load(trained)
    numbered = ImageClassifier(model.features, random_state=0)
    images = [str(path) for path in sorted((trained.parent / "photos").glob("*/*"))]
    numbered.fit(images, [int("red" in path) for path in images]).save("m.evergrow")
    assert run("forget", "m.evergrow", "1").exit_code == 0
    assert evergrow.load("m.evergrow").classes_.tolist() == [0]
