"""fit, add and forget: files that are whole, and errors that say what to do."""

import os
import threading
import time
from pathlib import Path

import pytest

import evergrow
from evergrow import ImageClassifier, NCMForestClassifier, RejectingClassifier, RLSClassifier
from evergrow.cli.fit import fit
from evergrow.cli.suggestions import report_new_classes
from evergrow.foundation.locks import lock_or_wait, lock_path
from evergrow.vision.classifier.components import FEATURES, LEARNER_TITLES, LEARNERS
from tests.vision.classifier.pictures import folder_of
from tests.vision.embedding.models import onnx_model
from tests.vision.embedding.pretrained.folders import write_folder

pytestmark = pytest.mark.slow


def test_the_command_offers_what_the_classifier_takes():
    choices = {one.name: getattr(one.type, "choices", ()) for one in fit.params}
    assert set(choices["features"]) == set(FEATURES)
    assert set(choices["learner"]) == {*LEARNERS, "auto"}
    assert LEARNERS.keys() == LEARNER_TITLES.keys()


def test_fit_writes_a_model_and_nothing_to_standard_output(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", n=3)
    result = run.ok(f"fit {photos} -o m.evergrow --features hsl --learner forest")
    assert result.stdout == ""
    assert "m.evergrow: 2 classes, 6 images." in result.stderr
    model = evergrow.load("m.evergrow")
    assert model.classes_.tolist() == ["green", "red"]
    assert isinstance(model.learner_, NCMForestClassifier)


@pytest.mark.parametrize("unknown", [[], ["--unknown"]])
def test_auto_takes_the_most_accurate_learner_and_says_why(run, tmp_path, unknown):
    photos = folder_of(tmp_path / "photos", "red", "green", n=6)
    result = run.ok(f"fit {photos} -o m.evergrow --features hsl --learner auto", *unknown)
    assert "Chose 'least squares' ('--learner rls'): 100.0% mean class accuracy in" in result.stderr
    assert "'class means' 100.0%" in result.stderr
    assert not unknown or evergrow.load("m.evergrow").learner_.false_alarms == 0.1


def test_auto_needs_two_images_of_two_classes_to_compare(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", n=1)
    result = run.ok(f"fit {photos} -o m.evergrow --features hsl --learner auto")
    assert "comparing learners needs two images of each of two classes" in result.stderr


@pytest.mark.parametrize("learner", ["means", "lda"])
def test_other_learners_are_saved_by_name(run, tmp_path, learner):
    photos = folder_of(tmp_path / "photos", "red", "green", n=3)
    run.ok(f"fit {photos} -o m.evergrow --features hsl --learner {learner}")
    assert evergrow.load("m.evergrow").learner == learner
    assert f"learner\t{learner} (NCMClassifier)" in run.ok("info m.evergrow").stdout
    run.ok("add m.evergrow", folder_of(tmp_path / "more", "blue", n=3))
    run.ok("forget m.evergrow red")


def test_photographs_are_embedded_by_default(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", n=2)
    run.ok(f"fit {photos} -o m.evergrow")
    run.ok("add m.evergrow", folder_of(tmp_path / "more", "blue", n=2))
    result = run("evaluate m.evergrow", folder_of(tmp_path / "test", "blue", n=1, seed=9))
    assert result.stdout.splitlines()[0] == "accuracy\t1.0000\t1\t1\t0"


@pytest.mark.parametrize("learner", ["rls", "auto"])
def test_another_network_can_be_chosen(run, tmp_path, learner):
    (tmp_path / "small.onnx").write_bytes(onnx_model().SerializeToString())
    photos = folder_of(tmp_path / "photos", "red", "green", n=3)
    run.ok(f"fit {photos} -o m.evergrow --network small.onnx --learner {learner}")
    assert "red" in run.ok(f"predict m.evergrow {photos}/red/0.png").stdout
    refused = run(f"fit {photos} -o n.evergrow --network small.onnx --features hsl")
    assert (refused.exit_code, "--network goes with --features embed" in refused.stderr) == (
        2,
        True,
    )


def test_a_folder_of_transformers_is_a_network(run, tmp_path):
    network = write_folder("clip", tmp_path / "clip")
    photos = folder_of(tmp_path / "photos", "red", "green", n=3)
    run.ok(f"fit {photos} -o m.evergrow --network {network}")
    (network / "model.safetensors").unlink()
    assert "red" in run.ok(f"predict m.evergrow {photos}/red/0.png").stdout
    missing = run(f"fit {photos} -o n.evergrow --network {network}")
    assert missing.exit_code == 1
    assert "has no model.safetensors" in " ".join(missing.stderr.split())
    assert not (tmp_path / "n.evergrow").exists()


def test_quiet_says_nothing(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", n=2)
    result = run(f"fit {photos} -o m.evergrow --features hsl -q -y")
    assert (result.exit_code, result.output) == (0, "")


def test_a_model_may_answer_unknown_and_still_learn_and_forget(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", "grey", n=12)
    run.ok(f"fit {photos} -o m.evergrow --features hsl --unknown --false-alarms 0.2")
    learner = evergrow.load("m.evergrow").learner_
    assert learner.false_alarms == 0.2
    assert learner.level_ < float("inf")
    run.ok("add m.evergrow", folder_of(tmp_path / "more", "blue", n=12))
    run.ok("forget m.evergrow grey")
    known = evergrow.load("m.evergrow")
    assert known.learner_._fitted.moments.settled is not None
    lines = run.ok("evaluate m.evergrow", tmp_path / "more").stdout.splitlines()
    n_images, right, _, rejected = lines[1].split("\t")[2:]
    assert int(n_images) == 12 == int(right) + int(rejected)
    assert lines[0].split("\t")[-1] == rejected


def test_too_few_images_to_answer_unknown_are_said(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", n=9)
    says = "Warning: 18 images are too few to tell unknown things: it takes 20\n"
    result = run.ok(f"fit {photos} -o m.evergrow --features hsl --unknown -q")
    assert result.stderr == says
    learner = 'RLSClassifier, answers "unknown" with 20 images or more, not with 18 (Rejecting'
    assert learner in run.ok("info m.evergrow").stdout
    assert "too few" not in run.ok("add m.evergrow", folder_of(tmp_path / "more", "blue")).stderr
    assert 'answers "unknown" (RejectingClassifier)' in run.ok("info m.evergrow").stdout
    assert says in run.ok("forget m.evergrow blue").stderr
    assert "too few" not in run.ok(f"fit {photos} -o n.evergrow --features hsl").stderr


def test_a_model_that_stores_few_of_its_images_says_so(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", n=12)
    learner = RejectingClassifier(RLSClassifier(), measure="cosine", random_state=0)
    ImageClassifier("hsl", learner, random_state=0).fit(photos).save("m.evergrow")
    result = run.ok("add m.evergrow", folder_of(tmp_path / "more", "red", n=1, seed=99))
    assert "Warning: 4 stored images are too few to tell unknown things" in result.stderr


def test_copies_in_a_class_are_counted_and_said(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", n=2)
    for copy in ("a.png", "b.png"):
        (photos / "red" / copy).write_bytes((photos / "red" / "0.png").read_bytes())
    says = "Warning: 2 images are copies of others in the same class; each copy counts\n"
    assert says in run.ok(f"fit {photos} -o m.evergrow --features hsl -q").stderr
    assert evergrow.load("m.evergrow").class_counts_.tolist() == [2, 4]


def test_a_share_of_false_alarms_needs_unknown(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", n=2)
    arguments = ("fit", photos, "-o", "m.evergrow", "--false-alarms", "0.2")
    run.fails(*arguments, code=2, says="--false-alarms needs --unknown")
    run.fails(*arguments[:-1], "2", "--unknown", code=2, says="0<=x<=1")
    assert not Path("m.evergrow").exists()


def test_one_seed_gives_one_model(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", n=3)
    for name, jobs in (("a", 1), ("b", 2)):
        arguments = ["--features", "hsl", "--learner", "forest", "--seed", 5, "--jobs", jobs]
        arguments += ["--unknown"]
        run.ok(f"fit {photos} -o", name, *arguments)
    assert Path("a").read_bytes() == Path("b").read_bytes()


def test_an_output_is_not_replaced_unless_forced(run, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", n=2)
    Path("m.evergrow").write_text("old")
    arguments = ("fit", photos, "-o", "m.evergrow", "--features", "hsl", "--yes")
    run.fails(*arguments, says="'m.evergrow' exists: use --force to replace it")
    assert Path("m.evergrow").read_text() == "old"
    run.ok(*arguments, "--force")
    assert evergrow.load("m.evergrow").classes_.tolist() == ["red"]


@pytest.mark.parametrize(
    ("output", "message"),
    [("nowhere/m.evergrow", "does not exist"), (".", "it is a folder, name a file")],
)
def test_an_output_that_cannot_be_is_refused_before_training(run, output, message):
    run.fails("fit", "no such folder", "-o", output, says=message)


def test_an_output_folder_that_is_not_writable_is_refused(run, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    run.fails("fit", "no such folder", "-o", "m.evergrow", says="its folder is not writable")


def empty(folder):
    folder.mkdir()


def flat(folder):
    folder_of(folder.parent / "other", "red", n=1)
    (folder.parent / "other" / "red").rename(folder)


def test_the_current_folder_is_not_taken_for_the_parent_of_a_class(run, tmp_path):
    flat(tmp_path / "photos")
    result = run.fails("fit photos -o m.evergrow", says="'photos' has no subfolders: put the")
    assert "parent" not in result.stderr
    (tmp_path / "data").mkdir()
    (tmp_path / "photos").rename(tmp_path / "data" / "photos")
    run.fails("fit data/photos -o m.evergrow", says="give its parent folder 'data', or put the")


def no_images(folder):
    (folder / "red").mkdir(parents=True)
    (folder / "red" / "notes.txt").write_text("no image")


def nothing(folder):
    pass


def a_file(folder):
    folder.write_text("no folder")


def bad_image(folder):
    folder_of(folder, "red", n=1)
    (folder / "red" / "bad.jpg").write_text("no image")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (empty, "put the images of each class into a folder of their own"),
        (flat, "put the images of each class into a folder of their own"),
        (no_images, "has images"),
        (nothing, "no such file or folder"),
        (a_file, "is not a folder"),
        (bad_image, "bad.jpg"),
    ],
)
def test_a_folder_that_cannot_be_learnt_is_an_error_without_a_traceback(
    run, tmp_path, make, message
):
    make(tmp_path / "photos")
    result = run.fails("fit photos -o m.evergrow --features hsl --yes")
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert not Path("m.evergrow").exists()


def test_bad_images_can_be_skipped_with_a_warning(run, tmp_path):
    bad_image(tmp_path / "photos")
    arguments = ["--features", "hsl", "--on-error", "skip", "--yes"]
    result = run.ok("fit photos -o m.evergrow", *arguments)
    assert "Warning: 1 image was left out" in result.stderr
    model = evergrow.load("m.evergrow")
    assert model.class_counts_.tolist() == [1]
    # What one command may skip is no matter of the next.
    assert model.on_error == "raise"


def test_one_class_or_nested_folders_are_not_learnt_unasked(run, tmp_path):
    folder_of(tmp_path / "one", "red", n=2)
    folder_of(tmp_path / "deep" / "data", "red", "green", n=2)
    for name, says in (
        ("one", "one class only, red"),
        ("deep", "the folders in them are green, red"),
    ):
        run.fails(f"fit {name} -o m.evergrow --features hsl", says=says)
        assert not Path("m.evergrow").exists()
    run.ok("fit deep -o m.evergrow --features hsl --yes")
    assert evergrow.load("m.evergrow").classes_.tolist() == ["data"]
    # One class more is what 'add' is for.
    run.ok("add m.evergrow one")


def test_names_of_classes_may_hold_anything(run, tmp_path):
    names = ["red cat", "猫", "two\nlines", 'comma, "quote"']
    for name in names:
        folder_of(tmp_path / "drawn", "red", n=1)
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "drawn" / "red").rename(tmp_path / "photos" / name)
    run.ok("fit photos -o m.evergrow --features hsl")
    classes = evergrow.load("m.evergrow").classes_.tolist()
    assert sorted(classes) == sorted(["red cat", "猫", "two\\nlines", 'comma, "quote"'])
    run.ok("forget m.evergrow 猫", "two\\nlines")
    assert len(evergrow.load("m.evergrow").classes_) == 2


def test_add_teaches_new_and_known_classes(run, model, tmp_path):
    more = folder_of(tmp_path / "more", "blue", "red", n=2, seed=70)
    result = run.ok(f"add {model} {more}")
    assert result.stdout == ""
    assert "Learned 4 images" in result.stderr
    assert "3 classes, 16 images." in result.stderr
    assert evergrow.load(model).class_counts_.tolist() == [6, 8, 2]
    assert sorted(os.listdir(tmp_path)) == ["model.evergrow", "more"]


def put_pictures(folder, name, n, seed):
    """Pictures of the class red in a folder of another name."""
    folder_of(folder, "red", n=n, seed=seed)
    (folder / "red").rename(folder / name)


def test_near_names_of_many_new_classes_are_told_in_short_time(capsys):
    known = [f"kind {'abcdefghij'[i % 10]}{i}" for i in range(3000)]
    new = [name.upper() for name in known[:1000]]
    start = time.process_time()
    report_new_classes(known, [*known, *new], "correct it", quiet=True)
    assert time.process_time() - start < 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 4
    assert told[0].startswith("Warning: 'KIND A0' is new; did you mean the known class 'kind a0'?")
    assert told[3] == "Warning: more new classes have names that are nearly those of known ones"


def test_add_names_new_classes(run, model, tmp_path):
    more = folder_of(tmp_path / "more", "blue", "red", n=1, seed=70)
    assert run.ok(f"add {model} {more}").stderr.endswith("New class: 'blue'.\n")
    assert "New class" not in run.ok(f"add {model} {more}").stderr
    for name in ("part 1", "part 2"):
        put_pictures(tmp_path / "parts", name, n=1, seed=len(name) + int(name[-1]))
    result = run.ok(f"add {model} parts")
    assert result.stderr.endswith("New classes: 'part 1', 'part 2'.\n")
    put_pictures(tmp_path / "other", "part 3", n=1, seed=90)
    assert "did you mean" not in run.ok(f"add {model} other").stderr


@pytest.mark.parametrize("name", ["Red", "RED", "r ed", "green s", "Greenn"])
def test_add_asks_about_new_names_that_are_nearly_known_ones(run, model, tmp_path, name):
    put_pictures(tmp_path / "more", name, n=1, seed=70)
    known = "red" if name.casefold().startswith("r") else "green"
    asked = f"Warning: {name!r} is new; did you mean the known class {known!r}? If so, "
    told = run.ok(f"add {model} more -q").stderr
    assert told.startswith(asked)
    assert told.endswith("'evergrow forget' the new class, correct its name and add it again\n")


def test_add_keeps_the_settings_of_the_model(run, model, tmp_path):
    before = evergrow.load(model).get_params()
    more = folder_of(tmp_path / "more", "blue", n=1)
    run.ok(f"add {model} {more} --on-error skip --jobs 2")
    assert evergrow.load(model).get_params() == before


def test_add_can_leave_the_model_as_it_is(run, model, tmp_path):
    before = model.read_bytes()
    more = folder_of(tmp_path / "more", "blue", n=2)
    run.ok(f"add {model} {more} -o larger.evergrow")
    assert model.read_bytes() == before
    assert len(evergrow.load("larger.evergrow").classes_) == 3
    run.fails(f"add {model} {more} -o larger.evergrow")
    run.ok(f"add {model} {more} -o larger.evergrow --force")


def test_a_failed_add_leaves_the_file(run, model, tmp_path):
    before = model.read_bytes()
    bad_image(tmp_path / "more")
    run.fails(f"add {model} more", says="bad.jpg")
    assert model.read_bytes() == before
    assert not lock_path(model).exists()


def test_a_file_that_something_else_changed_is_not_overwritten(run, model, tmp_path, monkeypatch):
    more = folder_of(tmp_path / "more", "blue", n=1)
    learn = ImageClassifier.partial_fit

    def learn_while_another_saves(self, *arguments, **options):
        evergrow.load(model).forget(classes=["red"]).save(model)
        return learn(self, *arguments, **options)

    monkeypatch.setattr(ImageClassifier, "partial_fit", learn_while_another_saves)
    run.fails(f"add {model} {more}", says="was changed by another program meanwhile")
    assert evergrow.load(model).classes_.tolist() == ["green"]


def test_an_error_names_all_bad_images_and_how_to_skip_them(run, model, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", n=2)
    for number in range(12):
        (photos / "red" / f"bad{number}.jpg").write_text("no image")
    for line in (f"fit {photos} -o new.evergrow --features hsl", f"add {model} {photos}"):
        # Bad images with the same content are not taken for known ones.
        result = run.fails(line, says="cannot read ")
        assert result.stderr.endswith(
            "; and 2 more, 12 in all; use --on-error skip to leave them out\n"
        )
        assert "bad9.jpg" in result.stderr
        assert "bad10.jpg" not in result.stderr
        skipped = run.ok(f"{line} --on-error skip")
        assert "12 images were left out" in skipped.stderr


def test_one_bad_image_is_named_with_the_way_to_skip_it(run, model, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", n=1)
    (photos / "red" / "bad.jpg").write_text("no image")
    result = run.fails(f"add {model} {photos}", says="cannot read ")
    assert result.stderr.endswith("; use --on-error skip to leave it out\n")


def test_adding_a_folder_again_changes_nothing(run, model, tmp_path):
    more = folder_of(tmp_path / "more", "blue", "red", n=2, seed=50)
    first = run.ok("add", model, more)
    assert "Learned 4 images" in first.stderr
    assert "Skipped" not in first.stderr
    before = evergrow.load(model).class_counts_.tolist()
    again = run.ok("add", model, more)
    assert "Learned 0 images" in again.stderr
    assert "Skipped 4 images that the model knows already." in again.stderr
    assert evergrow.load(model).class_counts_.tolist() == before
    # The images of fit are known, too.
    run.ok("add", model, folder_of(tmp_path / "photos", "red", n=3), "-q")
    assert evergrow.load(model).class_counts_.tolist() == before


def test_a_known_image_in_the_folder_of_another_class_is_named_and_left(run, model, tmp_path):
    before = evergrow.load(model).class_counts_.sum()
    more = folder_of(tmp_path / "more", "blue", "red", n=2, seed=50)
    (more / "blue" / "50.png").write_bytes((more / "red" / "50.png").read_bytes())
    folder_of(tmp_path / "first", "red", n=1, seed=50)
    run.ok("add", model, tmp_path / "first")
    result = run.ok("add", model, more)
    assert "50.png': the class 'red' has it already, so 'blue' does not get it" in result.stderr
    assert "Skipped 1 image that the model knows already." in result.stderr
    assert evergrow.load(model).class_counts_.sum() == before + 3


def test_two_commands_that_add_wait_for_each_other(run, model, tmp_path, monkeypatch):
    more = folder_of(tmp_path / "more", "blue", n=1)
    waits = threading.Event()
    released = threading.Event()

    def hold():
        with lock_or_wait(model, lambda: None):
            held.set()
            waits.wait(30)
            evergrow.load(model).forget(classes=["red"]).save(model)
            released.set()

    held = threading.Event()
    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(30)
    monkeypatch.setattr("evergrow.cli.models.report", lambda *_, **__: waits.set())
    run.ok(f"add {model} {more} -q")
    other.join()
    assert released.is_set()
    assert evergrow.load(model).classes_.tolist() == ["green", "blue"]


def test_one_that_waited_holds_the_lock_that_others_see(model):
    waits = threading.Event()
    seen = []

    def wait():
        with lock_or_wait(model, waits.set):
            seen.append(lock_path(model).exists())

    other = threading.Thread(target=wait)
    with lock_or_wait(model, lambda: None):
        other.start()
        assert waits.wait(30)
    other.join()
    assert seen == [True]
    assert not lock_path(model).exists()


def test_one_that_is_interrupted_while_it_waits_leaves_the_lock_to_its_holder(model):
    def interrupt():
        raise KeyboardInterrupt

    with lock_or_wait(model, lambda: None):
        with pytest.raises(KeyboardInterrupt), lock_or_wait(model, interrupt):
            pass
        assert lock_path(model).exists()
    assert not lock_path(model).exists()


def test_a_lock_that_was_left_behind_does_not_block(run, model, tmp_path):
    lock_path(model).touch()
    more = folder_of(tmp_path / "more", "blue", n=1)
    run.ok(f"add {model} {more}")
    assert not lock_path(model).exists()


@pytest.mark.parametrize(
    ("classes", "message"),
    [(["pink"], "unknown class 'pink'"), (["red", "green"], "forget would leave no class")],
)
def test_what_cannot_be_forgotten_leaves_the_file(run, model, classes, message):
    before = model.read_bytes()
    run.fails(f"forget {model}", *classes, says=message)
    assert model.read_bytes() == before


def test_classes_that_are_numbers_are_forgotten_by_their_digits(run, trained):
    model = evergrow.load(trained)
    numbered = ImageClassifier(model.features, random_state=0)
    images = [str(path) for path in sorted((trained.parent / "photos").glob("*/*"))]
    numbered.fit(images, [int("red" in path) for path in images]).save("m.evergrow")
    run.ok("forget m.evergrow 1")
    assert evergrow.load("m.evergrow").classes_.tolist() == [0]
