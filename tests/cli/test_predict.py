"""predict, evaluate and info: lines that programs can read, and what is wrong on standard error."""

import csv
import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import evergrow
from evergrow import NCMForestClassifier, RLSClassifier
from tests.cli.conftest import terminal
from tests.vision.classifier.pictures import folder_of


def test_predict_writes_a_line_per_image(run, trained, photos):
    result = run.ok(f"predict {trained} {photos}")
    assert result.stderr == ""
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert [Path(image).parent.name for image, _, _ in lines] == ["green"] * 3 + ["red"] * 3
    assert [label for _, label, _ in lines] == ["green"] * 3 + ["red"] * 3
    assert all(0.5 < float(share) <= 1 for _, _, share in lines)


def test_files_folders_and_patterns_are_taken(run, trained, photos):
    first = photos / "red" / "100.png"
    result = run.ok(f"predict {trained}", first, photos / "green", f"{photos}/**/*1.png")
    names = [Path(line.split("\t")[0]).name for line in result.stdout.splitlines()]
    assert names == ["100.png", "100.png", "101.png", "102.png", "101.png", "101.png"]


def test_json_is_an_object_per_line(run, trained, photos):
    result = run(f"predict {trained}", photos / "red", "--json", "--top", 9)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [entry["label"] for entry in found] == ["red"] * 3
    assert [one["name"] for one in found[0]["top"]] == ["red", "green"]
    assert sum(one["probability"] for one in found[0]["top"]) == pytest.approx(1)
    assert set(found[0]) == {"image", "label", "known", "top"}
    assert found[0]["known"] is True


def test_csv_has_a_header_and_quotes(run, trained, photos, tmp_path):
    name = 'a, "b"\nc 猫.png'
    shutil.copy(photos / "red" / "100.png", tmp_path / name)
    result = run(f"predict {trained}", name, "--csv", "--top", 2)
    header, row = csv.reader(io.StringIO(result.stdout, newline=""))
    assert header == ["image", "label", "probability", "known", "label_2", "probability_2"]
    assert row[0] == name
    assert (row[1], row[3], row[4]) == ("red", "true", "green")


def test_control_characters_in_names_are_escaped(run, trained, photos, tmp_path):
    shutil.copy(photos / "red" / "100.png", tmp_path / "a\n\x1b[31m\tb.png")
    result = run(f"predict {trained}", "a\n\x1b[31m\tb.png")
    assert result.stdout.split("\t")[0] == "a\\n\\x1b[31m\\tb.png"
    assert len(result.stdout.splitlines()) == 1


def test_a_file_name_that_is_not_text_is_predicted(run, trained, photos, tmp_path):
    name = b"caf\xe9.png".decode("utf-8", "surrogateescape")
    try:
        shutil.copy(photos / "red" / "100.png", tmp_path / name)
    except OSError:
        pytest.skip("this file system takes only text for names")
    result = run.ok(f"predict {trained} . --csv")
    assert result.stdout_bytes.splitlines()[1].startswith(b"caf\xe9.png,red,")
    assert "caf\\udce9.png" in run(f"predict {trained} .").stdout


def test_bad_images_are_named_and_the_others_answered(run, trained, photos, tmp_path):
    for i in range(7):
        (tmp_path / f"bad\n{i}.jpg").write_text("no image")
    result = run.fails(f"predict {trained} .", photos / "red")
    assert len(result.stdout.splitlines()) == 3
    lines = result.stderr.splitlines()
    assert len(lines) == 7
    assert all(line.startswith("Error: 'bad\\n") for line in lines)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_all_that_cannot_be_read_in_a_folder_is_named(run, trained, photos, tmp_path):
    shutil.copy(photos / "red" / "100.png", tmp_path / "good.png")
    for i in range(7):
        (tmp_path / f"gone{i}.jpg").symlink_to("nothing")
    (tmp_path / "folder").symlink_to(photos)
    result = run.fails(f"predict {trained} .")
    assert len(result.stdout.splitlines()) == 7
    result = run.fails(f"predict {trained} . --no-follow-links")
    assert len(result.stdout.splitlines()) == 1
    lines = result.stderr.splitlines()
    assert sum(line.endswith("a link to nothing") for line in lines) == 7
    assert sum(line.endswith("folder': a link is not followed") for line in lines) == 1


def test_a_table_without_answers_has_no_headings(run, trained, tmp_path, monkeypatch):
    terminal(monkeypatch, 80)
    (tmp_path / "bad.jpg").write_text("no image")
    assert run.fails(f"predict {trained} bad.jpg").stdout == ""


@pytest.mark.parametrize("what", ["nowhere", "*.gif", "empty"])
def test_no_images_are_an_error(run, trained, tmp_path, what):
    (tmp_path / "empty").mkdir()
    run.fails(f"predict {trained}", what, says=what)


@pytest.mark.parametrize("command", ["predict", "evaluate", "add", "forget"])
def test_a_model_that_takes_numbers_is_refused(run, command):
    NCMForestClassifier(2, min_samples_leaf=1).fit([[0], [1]], [0, 1]).save("forest.evergrow")
    run.fails(
        command,
        "forest.evergrow",
        ".",
        says="holds the estimator NCMForestClassifier, which takes numbers, not images",
    )


@pytest.mark.parametrize("command", ["predict", "evaluate", "add", "forget", "info"])
@pytest.mark.parametrize("kind", ["damaged", "folder", "absent", "text"])
def test_a_path_that_is_not_a_model_file_is_refused(run, model, tmp_path, command, kind):
    content = bytearray(model.read_bytes())
    content[-9] ^= 1
    (tmp_path / "damaged").write_bytes(content)
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("no model")
    run.fails(command, kind, *([] if command == "info" else ["."]), says=repr(kind))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "damaged",
        "folder",
        "model.evergrow",
        "text",
    ]


@pytest.mark.parametrize("command", ["predict", "evaluate", "add"])
@pytest.mark.parametrize("name", ["cup.jpg", "clip.mp4"])
def test_a_picture_in_the_place_of_the_model_is_refused(run, model, tmp_path, command, name):
    (tmp_path / name).write_text("no model")
    run.fails(command, name, model, says="is an image or a video: the model file comes first")
    run.fails(command, name, code=2, says="is an image or a video: the model file comes first")


@pytest.mark.parametrize("command", ["predict", "evaluate", "add"])
def test_a_folder_alone_is_told_that_the_model_comes_first(run, tmp_path, command):
    folder_of(tmp_path / "photos", "red", n=1)
    run.fails(command, "photos", code=2, says="'photos' is a folder: first name a model file")


@pytest.mark.parametrize("command", ["predict", "evaluate", "add", "forget", "info"])
def test_a_mistyped_model_file_is_asked_about(run, model, command):
    says = "cannot load 'modle.evergrow': there is no such file; did you mean 'model.evergrow'?\n"
    run.fails(command, "modle.evergrow", *([] if command == "info" else ["."]), says=says)


def test_mistyped_images_are_asked_about(run, trained, tmp_path):
    folder_of(tmp_path / "photos", "red", "green", n=1)
    says = "'photo'; did you mean 'photos'?\n"
    for line in (f"predict {trained} photo", "fit photo -o m.evergrow"):
        run.fails(line, says=says)
    run.fails(f"predict {trained} photos/rde", says="'photos/rde'; did you mean 'red'?\n")
    result = run.fails(f"predict {trained} nowhere/photo", says="'nowhere/photo'\n")
    assert "did you mean" not in result.stderr


def test_evaluate_writes_accuracy_and_classes(run, trained, photos):
    result = run.ok(f"evaluate {trained} {photos}")
    assert result.stdout.splitlines() == [
        "accuracy\t1.0000\t6\t6\t0",
        "class\tgreen\t3\t3\t1.0000\t0",
        "class\tred\t3\t3\t1.0000\t0",
    ]


def test_evaluate_counts_what_is_taken_for_what(run, trained, tmp_path):
    folder_of(tmp_path / "test", "red", "green", n=2)
    (tmp_path / "test" / "green" / "1.png").rename(tmp_path / "test" / "red" / "9.png")
    result = run(f"evaluate {trained} test --json")
    found = json.loads(result.stdout)
    assert found["accuracy"] == 0.75
    assert found["confusion"] == {"classes": ["green", "red"], "counts": [[1, 0], [1, 2]]}
    green, red = found["classes"]
    counts = {"class": "red", "images": 3, "right": 2, "wrong": 1, "rejected": 0}
    assert red == counts | {"accuracy": 2 / 3, "recall": 2 / 3, "precision": 1.0}
    assert (green["recall"], green["precision"]) == (1.0, 0.5)
    assert found["mean_class_accuracy"] == pytest.approx(5 / 6)
    assert found["top5"] == 1.0
    assert found["n_rejected"] == 0
    assert found["problems"] == []


def test_evaluate_reports_what_it_cannot_judge(run, trained, tmp_path):
    folder_of(tmp_path / "test", "red", "blue", n=2)
    (tmp_path / "test" / "red" / "bad.jpg").write_text("no image")
    result = run.fails(f"evaluate {trained} test --json")
    found = json.loads(result.stdout)
    assert (found["unknown_classes"], found["noticed"]) == ({"blue": 2}, None)
    assert found["n_images"] == 2
    assert "bad.jpg" in found["problems"][0]["image"]
    told = "Warning: the model does not know 'blue': its 2 images are not counted; "
    assert told in result.stderr
    assert "Error: 'test/red/bad.jpg': it is not an image" in result.stderr


def test_evaluate_warns_of_what_training_warns_of(run, trained, tmp_path):
    folder_of(tmp_path / "test", "red", n=2)
    (tmp_path / "test" / "empty").mkdir()
    (tmp_path / "test" / "red" / "raw.CR2").write_text("no image")
    for line in (f"evaluate {trained} test", "fit test -o new.evergrow --features hsl --yes"):
        told = run.ok(line).stderr
        assert "'test/red/raw.CR2': images of this format are not read" in told
        assert "'test/empty': the folder has no images" in told


def test_evaluate_suggests_the_class_that_was_meant(run, trained, tmp_path):
    folder_of(tmp_path / "test", "red", "green", n=1)
    (tmp_path / "test" / "green").rename(tmp_path / "test" / "greem")
    told = run.ok(f"evaluate {trained} test").stderr
    counted = "its image is not counted; it was answered 'green'; did you mean 'green'?\n"
    assert f"Warning: the model does not know 'greem': {counted}" in told


def test_evaluate_names_the_answers_for_a_class_that_is_not_known(
    run, trained, tmp_path, monkeypatch
):
    folder_of(tmp_path / "test", "red", "blue", n=3)
    answers = np.array(["red", "red", "unknown"])
    monkeypatch.setattr(RLSClassifier, "predict", lambda *_: answers)
    told = run.ok(f"evaluate {trained} test").stderr
    listed = "its 3 images are not counted; 2 were answered 'red', 1 \"unknown\"\n"
    assert f"Warning: the model does not know 'blue': {listed}" in told


def test_evaluate_warns_of_images_that_the_model_has_learnt(run, trained, photos, tmp_path):
    assert json.loads(run.ok(f"evaluate {trained} {photos} --json").stdout)["n_learnt"] == 0
    folder_of(tmp_path / "test", "red", "green", n=2, seed=100)
    learnt = trained.parent / "photos" / "red"
    for k, path in enumerate(sorted(learnt.iterdir())[:3]):
        shutil.copy(path, tmp_path / "test" / "green" / f"copy{k}{path.suffix}")
    result = run.ok(f"evaluate {trained} test --json --quiet")
    assert json.loads(result.stdout)["n_learnt"] == 3
    assert "Warning: the model has learnt 3 of the 7 images, so the accuracy" in result.stderr


def test_evaluate_suggests_known_classes_if_it_knows_none(run, trained, tmp_path):
    folder_of(tmp_path / "test", "red", n=1)
    (tmp_path / "test" / "red").rename(tmp_path / "test" / "RED")
    run.fails(f"evaluate {trained} test", says="it knows 'green', 'red'; did you mean 'red'?\n")
    folder_of(tmp_path / "test", "blue", n=1)
    run.fails(f"evaluate {trained} test", says="'red'; 'RED': did you mean 'red'?\n")


def test_a_picture_that_cannot_be_drawn_is_an_error_before_the_work(run, trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    says = "Error: plots need matplotlib: pip install "
    result = run.fails(f"evaluate {trained} nowhere --confusion c.svg", says=says)
    assert result.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["confusion.svg", "confusion.PNG"])
def test_the_confusion_is_drawn(run, trained, photos, name):
    result = run.ok(f"evaluate {trained} {photos} --confusion", name)
    assert f"{name}: confusion matrix written." in result.stderr
    content = Path(name).read_bytes()
    assert content.startswith((b"<?xml", b"\x89PNG"))


def test_a_picture_is_not_replaced_unless_forced(run, trained, photos):
    Path("c.svg").write_text("old")
    run.fails(f"evaluate {trained} {photos} --confusion c.svg", says="use --force to replace it")
    assert Path("c.svg").read_text() == "old"
    run.ok(f"evaluate {trained} {photos} --confusion c.svg --force")
    assert Path("c.svg").read_bytes().startswith(b"<?xml")


def test_rejected_images_are_counted(run, trained, photos, monkeypatch):
    def reject_green(_, matrix):
        return np.array(["unknown"] * 3 + ["red"] * 3)

    monkeypatch.setattr(RLSClassifier, "predict", reject_green)
    found = json.loads(run(f"evaluate {trained} {photos} --json").stdout)
    assert (found["n_images"], found["n_right"], found["n_rejected"]) == (6, 3, 3)
    assert [entry["rejected"] for entry in found["classes"]] == [3, 0]
    assert found["confusion"]["counts"] == [[0, 0], [0, 3]]
    assert [entry["wrong"] for entry in found["classes"]] == [0, 0]
    assert [entry["precision"] for entry in found["classes"]] == [None, 1.0]


def test_mix_ups_are_told_apart_from_unknown(run, trained, photos, monkeypatch):
    answers = np.array(["unknown", "red", "red", "red", "red", "red"])
    monkeypatch.setattr(RLSClassifier, "predict", lambda *_: answers)
    terminal(monkeypatch, 80)
    lines = [each.split() for each in run(f"evaluate {trained} {photos}").stdout.splitlines()]
    assert ["Accuracy", "50.0%", "3", "of", "6", "right,", "2", "wrong,", "1", "unknown"] in lines
    assert ["green", "3", "0", "2", "1", "0.0%", "\N{EN DASH}"] in lines
    assert ["red", "3", "3", "0", "0", "100.0%", "60.0%"] in lines
    assert ["green", "red", "2", "of", "3"] in lines


def test_a_picture_of_another_kind_is_a_usage_error(run, trained):
    run.fails(
        f"evaluate {trained} . --confusion picture.doc", code=2, says="must end in .svg or .png"
    )


def test_info_reports_the_content_of_a_model(run, trained):
    result = run.ok(f"info {trained}")
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert ["estimator", "ImageClassifier"] in lines
    assert ["features", "hsl (BagOfWords)"] in lines
    assert ["learner", "rls (RLSClassifier)"] in lines
    assert lines[-2:] == [["class", "green", "6"], ["class", "red", "6"]]
    found = json.loads(run(f"info {trained} --json").stdout)
    assert found["n_images"] == 12
    assert found["size_bytes"] == trained.stat().st_size
    assert found["library_version"] == evergrow.__version__
    assert found["classes"][0] == {"class": "green", "images": 6}


def test_info_reads_models_of_numbers_too(run):
    NCMForestClassifier(2, min_samples_leaf=1).fit([[0], [1]], [3, 4]).save("forest.evergrow")
    found = json.loads(run("info forest.evergrow --json").stdout)
    assert found["estimator"] == "NCMForestClassifier"
    assert [entry["class"] for entry in found["classes"]] == [3, 4]
    evergrow.NCMMetric(1, max_iter=1).fit(np.eye(3), [0, 1, 1]).save("metric.evergrow")
    assert json.loads(run("info metric.evergrow --json").stdout)["classes"] is None
    run.ok("info metric.evergrow")
