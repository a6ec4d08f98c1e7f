"""Every format in and out from the command line, with files as other programs write them."""

import csv
import io
import json
import os
import shutil
from pathlib import Path

import pytest
from PIL import Image

import evergrow
from evergrow.vision import find_labelled
from tests.cli.conftest import terminal
from tests.vision.classifier.pictures import folder_of, picture
from tests.vision.embedding.models import onnx_model
from tests.vision.images.labelled.files import coco, pictures, shard, table
from tests.vision.images.videos import FakeCamera, write_video

pytestmark = pytest.mark.slow

HSL = "--features hsl"


def tar_of_colours(path, **options):
    pytest.importorskip("webdataset")
    return shard(path, label="txt", **options)


SOURCES = {
    "table": table,
    "annotations": coco,
    "boxes": coco,
    "tar": lambda folder, **options: tar_of_colours(folder / "a.tar", **options),
}


def source(kind, folder, **options):
    folder.mkdir()
    return SOURCES[kind](folder, **options), " --crop" if kind == "boxes" else ""


@pytest.mark.parametrize("kind", SOURCES)
def test_a_model_is_trained_taught_and_measured(run, tmp_path, kind):
    train, more = source(kind, tmp_path / "train", n=6)
    run.ok(f"fit {train} -o m.evergrow {HSL}{more}")
    assert evergrow.load("m.evergrow").classes_.tolist() == ["green", "red"]
    new, _ = source(kind, tmp_path / "new", seed=50)
    run.ok(f"add m.evergrow {new}{more}")
    assert evergrow.load("m.evergrow").class_counts_.tolist() == [9, 9]
    assert "Skipped 6 images" in run.ok(f"add m.evergrow {new}{more}").stderr
    test, _ = source(kind, tmp_path / "test", seed=100)
    result = run.ok(f"evaluate m.evergrow {test}{more}")
    assert result.stdout.splitlines()[0] == "accuracy\t1.0000\t6\t6\t0"


@pytest.mark.parametrize("kind", SOURCES)
def test_shards_of_features_are_made(run, tmp_path, kind):
    (tmp_path / "n.onnx").write_bytes(onnx_model().SerializeToString())
    path, more = source(kind, tmp_path / "data")
    line = f"shard {path} -o shards --network n.onnx{more}"
    assert "6 rows added" in run.ok(line).stderr
    assert "0 rows added, 6 already present" in run.ok(line).stderr


def test_label_issues_takes_a_table(run, tmp_path):
    run.ok(f"label-issues {table(tmp_path / 'data', n=6)} --csv")


def test_bad_rows_are_named_and_nothing_is_written(run, tmp_path):
    path = table(tmp_path)
    path.write_text(path.read_text() + "images/no.png,red\nimages/r0.png\n../x.png,red\n")
    result = run.fails(f"fit {path} -o m.evergrow {HSL}")
    for line, reason in ((8, "no such file"), (9, "1 fields"), (10, "leaves the folder")):
        assert f"line {line}:" in result.stderr
        assert reason in result.stderr
    assert "use --on-error skip" in result.stderr
    assert not Path("m.evergrow").exists()
    result = run.ok(f"fit {path} -o m.evergrow {HSL} --on-error skip")
    assert "line 9" in result.stderr
    result = run.fails(f"evaluate m.evergrow {path}")
    assert result.stdout.startswith("accuracy\t1.0000\t6\t6\t0")
    warning, *errors = result.stderr.splitlines()
    assert warning.startswith("Warning: the model has learnt 6 of the 6 images")
    assert len(errors) == 3


def test_options_of_tables(run, tmp_path):
    pictures(tmp_path / "photos")
    absolute = tmp_path / "photos" / "r2.png"
    (tmp_path / "t.tsv").write_text(f"what\twhere\nred\tr0.png\ngreen\tg0.png\nred\t{absolute}\n")
    line = f"fit t.tsv -o m.evergrow {HSL} --images photos"
    run.fails(line, says="its first line must name the columns")
    run.fails(f"{line} --columns where,what", says="is an absolute path")
    run.ok(f"{line} --columns where,what --outside")
    assert evergrow.load("m.evergrow").class_counts_.tolist() == [1, 2]
    run.fails(f"{line} --columns where", code=2, says="PATH,LABEL")


def test_several_categories_are_named_with_their_images(run, tmp_path):
    path = coco(tmp_path)
    content = json.loads(path.read_text())
    content["annotations"].append({"id": 1, "image_id": 0, "category_id": 8, "bbox": [0, 0, 9, 9]})
    path.write_text(json.dumps(content))
    result = run.fails(f"fit {path} -o m.evergrow {HSL}", says="'r0.png'")
    assert "use --crop" in result.stderr
    run.ok(f"fit {path} -o m.evergrow {HSL} --crop")
    assert evergrow.load("m.evergrow").class_counts_.tolist() == [4, 3]


def test_several_tar_files_are_one_source(run, tmp_path):
    for i in range(3):
        tar_of_colours(tmp_path / f"train-{i:03d}.tar", seed=10 * i)
    run.ok("fit", "train-{000..002}.tar", *f"-o m.evergrow {HSL}".split())
    assert evergrow.load("m.evergrow").class_counts_.tolist() == [9, 9]
    content = (tmp_path / "train-001.tar").read_bytes()
    (tmp_path / "train-001.tar").write_bytes(content[:5000])
    run.fails("fit", "train-*.tar", *f"-o n.evergrow {HSL}".split(), says="it is truncated")
    assert not Path("n.evergrow").exists()


@pytest.mark.parametrize("val", ["val", "valid", "Validation"])
def test_the_accuracy_on_val_is_reported(run, tmp_path, val):
    for split, seed in (("train", 0), (val, 50), ("test", 100)):
        folder_of(tmp_path / "photos" / split, "red", "green", n=3, seed=seed)
    folder_of(tmp_path / "photos" / val, "blue", n=1)
    result = run.ok(f"fit photos -o m.evergrow {HSL}")
    assert "Using the split 'photos/train'." in result.stderr
    told = f"Accuracy on the split 'photos/{val}': 100.0%, 6 of 6 right, 1 image left out."
    assert told in result.stderr
    assert run.ok(f"fit photos -o m.evergrow {HSL} --force --quiet").stderr == ""
    assert "'photos/test'" in run.ok("evaluate m.evergrow photos").stderr
    assert f"'photos/{val}'" in run.ok("evaluate m.evergrow photos --split val").stderr


def test_a_split_val_that_cannot_be_used_is_a_warning(run, tmp_path):
    folder_of(tmp_path / "photos" / "train", "red", "green", n=3)
    (tmp_path / "photos" / "val" / "red").mkdir(parents=True)
    result = run.ok(f"fit photos -o m.evergrow {HSL}")
    assert "Warning: the split val cannot be used: no folder in" in result.stderr
    folder_of(tmp_path / "photos" / "val", "blue", n=2)
    result = run.ok(f"fit photos -o m.evergrow {HSL} --force")
    assert "No image of the split 'photos/val' could be used, 2 images left out." in result.stderr


def test_a_split_that_is_missing_is_named(run, tmp_path, model):
    folder_of(tmp_path / "photos" / "val", "red", "green", n=2)
    folder_of(tmp_path / "photos" / "test", "red", "green", n=2)
    says = "has the splits 'test', 'val', but not train"
    run.fails(f"fit photos -o n.evergrow {HSL}", says=says)
    folder_of(tmp_path / "plain", "red", "green", n=2)
    run.fails(f"evaluate {model} plain --split val", says="'plain' has no splits")


def test_classes_called_train_and_test_can_be_learnt(run, tmp_path):
    for name, colour in (("train", "red"), ("test", "green")):
        folder_of(tmp_path / "vehicles" / name / "photos", colour, n=2)
    result = run.ok(f"fit vehicles -o m.evergrow {HSL} --yes")
    assert "If it is a class, use '--split none'." in result.stderr
    run.ok(f"fit vehicles -o m.evergrow {HSL} --yes --force --split none")
    assert evergrow.load("m.evergrow").classes_.tolist() == ["test", "train"]


@pytest.mark.parametrize("kind", ["heic", "avif"])
def test_photographs_of_phones_are_learnt_and_answered(run, tmp_path, kind):
    import pillow_heif

    for colour in ("red", "green"):
        for i in range(4):
            path = tmp_path / "photos" / colour / f"{i}.{kind}"
            path.parent.mkdir(parents=True, exist_ok=True)
            image = Image.fromarray(picture(colour, i))
            if kind == "avif":
                image.save(path)
            else:
                pillow_heif.from_pillow(image).save(path)
    run.ok(f"fit photos -o m.evergrow {HSL}")
    run.ok("add m.evergrow photos")
    lines = run.ok("predict m.evergrow photos").stdout.splitlines()
    assert [line.split("\t")[1] for line in lines] == ["green"] * 4 + ["red"] * 4
    broken = tmp_path / "photos" / "red" / f"0.{kind}"
    broken.write_bytes(broken.read_bytes()[:-50])
    run.fails("predict m.evergrow photos/red", says=f"0.{kind}")


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_file_of_answers_can_be_read_again(run, trained, photos):
    shutil.copytree(photos, "in")
    run.ok(f"predict {trained} in -o answers.csv --top 2")
    run.ok(f"predict {trained} in -o answers.json")
    run.ok(f"predict {trained} in -o answers.jsonl")
    run.ok(f"predict {trained} in -o answers.tsv")
    rows = rows_of(run(f"predict {trained} in --csv").stdout)
    expected = {row["image"]: row["label"] for row in rows}
    assert len(expected) == 6
    for name in ("answers.csv", "answers.json"):
        found = find_labelled(name)
        assert (
            dict(zip(map(os.fspath, found.paths), found.labels.tolist(), strict=True)) == expected
        )
        run.ok(f"fit {name} -o {name}.evergrow {HSL}")
    lines = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
    assert [line["label"] for line in lines] == list(expected.values())
    assert len(Path("answers.tsv").read_text().splitlines()) == 6


def test_names_are_relative_to_the_file(run, trained, photos):
    shutil.copytree(photos, "in")
    Path("out").mkdir()
    run.ok(f"predict {trained} in/red -o out/a.csv")
    assert rows_of(Path("out/a.csv").read_text())[0]["image"] == "../in/red/100.png"
    run.fails(f"fit out/a.csv -o n.evergrow {HSL} --yes", says="leaves the folder")
    run.ok(f"fit out/a.csv -o n.evergrow {HSL} --yes --outside")


def test_images_that_fit_no_class_are_not_learnt_from_a_file_of_answers(run, tmp_path):
    pictures(tmp_path, n=2)
    (tmp_path / "a.csv").write_text(
        "image,label,probability,known\nr0.png,red,0.9,true\ng0.png,unknown,,false\n"
    )
    found = find_labelled("a.csv")
    assert found.labels.tolist() == ["red"]
    assert found.unreadable == ()
    assert "fit no class" in str(found.problems[0])


def test_a_file_of_answers_is_not_replaced_or_half_written(run, trained, photos, tmp_path):
    Path("a.csv").write_text("mine")
    run.fails(f"predict {trained} {photos} -o a.csv", says="use --force")
    assert Path("a.csv").read_text() == "mine"
    run.ok(f"predict {trained} {photos} -o a.csv --force")
    run.fails(f"predict {trained} nothing/ -o b.csv", says="nothing")
    run.fails(f"predict {trained} {photos} -o b.txt", code=2, says="must end in one of")
    run.fails(f"predict {trained} {photos} -o b.csv --json", code=2, says="leave out --json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv"]


def test_photographs_are_sorted_into_class_folders(run, trained, photos):
    mixed = Path("mixed")
    for path in photos.rglob("*.png"):
        shutil.copytree(path.parent, mixed / path.parent.name[::-1], dirs_exist_ok=True)
    before = sorted(path.read_bytes() for path in mixed.rglob("*.png"))
    result = run.ok(f"predict {trained} mixed --sort-into sorted")
    assert result.stderr == "sorted: 6 images of 2 classes.\n"
    assert sorted(path.read_bytes() for path in mixed.rglob("*.png")) == before
    assert sorted(path.read_bytes() for path in Path("sorted").rglob("*.png")) == before
    assert sorted(path.name for path in Path("sorted").iterdir()) == ["green", "labels.csv", "red"]
    run.ok("evaluate", trained, "sorted")
    run.fails(f"predict {trained} mixed --sort-into sorted", says="not empty")
    run.ok(f"predict {trained} mixed --sort-into linked --link hard")
    assert len(list(Path("linked").rglob("*.png"))) == 6


def test_nothing_is_sorted_if_it_fails(run, trained, photos, tmp_path, monkeypatch):
    def refuse(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("evergrow.vision.images.labelled.sorted_folders._put", refuse)
    run.fails(f"predict {trained} {photos} --sort-into sorted", code=130)
    assert list(tmp_path.iterdir()) == []


def test_a_video_has_a_line_per_second(run, trained, tmp_path):
    write_video(tmp_path / "clip.mp4", "red", "green")
    lines = run.ok(f"predict {trained} clip.mp4").stdout.splitlines()
    assert [line.split("\t")[:2] for line in lines] == [
        ["clip.mp4#t=0.000", "red"],
        ["clip.mp4#t=1.000", "red"],
        ["clip.mp4#t=2.000", "green"],
        ["clip.mp4#t=3.000", "green"],
    ]
    rows = rows_of(run.ok(f"predict {trained} clip.mp4 --every 0.5s --csv --top 2").stdout)
    assert [row["time"] for row in rows[:3]] == ["0.000", "0.500", "1.000"]
    assert {row["image"] for row in rows} == {"clip.mp4"}
    assert [row["label"] for row in rows] == ["red"] * 4 + ["green"] * 4
    found = run.ok(f"predict {trained} clip.mp4 --every 30 --json").stdout.splitlines()
    assert [json.loads(line)["time"] for line in found] == [0.0, 3.0]
    run.ok(f"predict {trained} clip.mp4 -o clip.csv")
    assert len(rows_of(Path("clip.csv").read_text())) == 4


def test_images_and_videos_can_be_mixed(run, trained, photos, tmp_path):
    write_video(tmp_path / "clip.avi", "green")
    first = photos / "red" / "100.png"
    rows = rows_of(run.ok(f"predict {trained} clip.avi {first} --csv").stdout)
    assert [(row["label"], row["time"]) for row in rows] == [
        ("red", ""), ("green", "0.000"), ("green", "1.000"),
    ]  # fmt: skip


def test_a_video_on_a_terminal_is_written_line_by_line(run, trained, tmp_path, monkeypatch):
    write_video(tmp_path / "clip.avi", "green")
    terminal(monkeypatch, 80)
    assert run.ok(f"predict {trained} clip.avi").stdout.startswith("clip.avi#t=0.000\tgreen\t")


def test_broken_videos_are_named_and_the_others_answered(run, trained, tmp_path):
    write_video(tmp_path / "good.avi", "green")
    content = (tmp_path / "good.avi").read_bytes()
    (tmp_path / "half.avi").write_bytes(content[: len(content) // 2])
    (tmp_path / "bad.mp4").write_text("no video")
    result = run.fails(f"predict {trained} bad.mp4 missing.mov half.avi good.avi --every 5")
    names = [line.split("#")[0] for line in result.stdout.splitlines()]
    assert names == ["half.avi"] * names.count("half.avi") + ["good.avi"] * 4
    assert names.count("half.avi") > 0
    errors = result.stderr.splitlines()
    assert [error.split("'")[1] for error in errors] == ["bad.mp4", "missing.mov", "half.avi"]
    assert "it is truncated" in errors[2]


def test_a_camera_is_answered_until_it_is_interrupted(run, trained, monkeypatch):
    camera = FakeCamera("red", "green", n=2, end=KeyboardInterrupt())
    monkeypatch.setattr("evergrow.vision.images.video.open_camera", lambda _: camera)
    result = run.ok(f"predict {trained} --camera 0 --every 1 --json")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["label"] for one in found] == ["red", "red", "green", "green"]
    assert {one["image"] for one in found} == {"camera 0"}
    assert camera.is_released


def test_an_interrupted_video_leaves_no_file(run, trained, tmp_path, monkeypatch):
    clip = FakeCamera("red", n=20, end=KeyboardInterrupt())
    monkeypatch.setattr("evergrow.vision.images.video.open_video", lambda _: clip)
    run.fails(f"predict {trained} clip.mp4 --every 1 -o a.csv", code=130)
    assert clip.is_released
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("", "name IMAGES, or a camera"),
        ("a.jpg --camera 0", "--camera takes no IMAGES"),
        ("a.jpg --every 1s", "--every is for videos"),
        ("a.mp4 --every often", "must be a time such as 0.5s"),
        ("a.mp4 --sort-into x", "--sort-into is for images"),
        ("a.mp4 -o x.json", "frames are not files"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, trained, arguments, says):
    run.fails(f"predict {trained} {arguments}", code=2, says=says)
