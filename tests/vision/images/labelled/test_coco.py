"""COCO annotations: what is read, what is written, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evergrow.foundation.errors import ImageError, InvalidInputError
from evergrow.vision import ImageClassifier, find_labelled, read_image, save_coco
from evergrow.vision.images.labelled.coco import ImageCrop
from tests.vision.classifier.pictures import MeanColours
from tests.vision.images.labelled.files import coco, pictures


def change(path: Path, *keys: Any, to: Any) -> Path:
    content = json.loads(path.read_text())
    entry = content
    for key in keys[:-1]:
        entry = entry[key]
    entry[keys[-1]] = to
    path.write_text(json.dumps(content))
    return path


def test_the_category_of_an_image_is_its_class(tmp_path: Path) -> None:
    found = find_labelled(coco(tmp_path))
    assert [path.name for path in found.paths][::3] == ["r0.png", "g0.png"]
    assert found.labels.tolist() == ["red"] * 3 + ["green"] * 3
    assert found.problems == ()
    assert ImageClassifier(MeanColours()).fit(tmp_path / "annotations.json").score(found) == 1


def test_several_categories_need_boxes(tmp_path: Path) -> None:
    path = coco(tmp_path)
    content = json.loads(path.read_text())
    both = {"id": 9, "image_id": 0, "category_id": 8, "bbox": [16, 12, 16, 12]}
    path = coco(tmp_path, annotations=[*content["annotations"], both])
    found = find_labelled(path)
    (problem,) = found.unreadable
    assert "'r0.png'" in problem.source
    assert "2 categories ('green', 'red'): use --crop" in problem.reason
    boxes = find_labelled(path, crop=True)
    assert boxes.problems == ()
    assert len(boxes.sources) == 7
    assert boxes.labels.tolist() == ["red", "green", "red", "red", "green", "green", "green"]


def test_a_box_is_cut_out_of_the_upright_image(tmp_path: Path) -> None:
    pixels = np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3)
    turned = Image.fromarray(np.rot90(pixels))
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(tmp_path / "turned.png", exif=exif)
    Image.fromarray(pixels).save(tmp_path / "plain.png")
    for name in ("plain.png", "turned.png"):
        crop = ImageCrop(tmp_path / name, (1.5, 2, 3, 100), (8, 6), "1")
        np.testing.assert_array_equal(read_image(crop), pixels[2:, 1:5])
    with pytest.raises(InvalidInputError, match="say 6 x 8 pixels, but upright it has 8 x 6"):
        read_image(ImageCrop(tmp_path / "turned.png", (0, 0, 1, 1), (6, 8), "1"))
    for box in ((8, 0, 4, 4), (-9, 0, 4, 4), (0, 99, 1, 1)):
        with pytest.raises(InvalidInputError, match="outside of the image"):
            read_image(ImageCrop(tmp_path / "plain.png", box, None, "1"))


@pytest.mark.parametrize("box", [None, [], [0, 0, 0, 5], [0, 0, -1, 5], [0, 0, "1", 5], [1e99] * 4])
def test_annotations_without_an_area_are_named(tmp_path: Path, box: Any) -> None:
    path = change(coco(tmp_path), "annotations", 0, "bbox", to=box)
    (problem,) = find_labelled(path, crop=True).unreadable
    assert "'r0.png' annotation 100: it has no box with an area" in str(problem)


def test_crowds_are_left_out(tmp_path: Path) -> None:
    path = change(coco(tmp_path), "annotations", 0, "iscrowd", to=1)
    found = find_labelled(path, crop=True)
    assert (len(found.sources), found.unreadable) == (5, ())
    assert "it is a crowd" in str(found.problems[0])


def test_missing_files_and_names_outside_are_problems(tmp_path: Path) -> None:
    path = change(coco(tmp_path), "images", 0, "file_name", to="../r0.png")
    path = change(path, "images", 1, "file_name", to="gone.png")
    reasons = [one.reason for one in find_labelled(path).unreadable]
    assert reasons == [
        "'../r0.png' leaves the folder of the file",
        "'gone.png': there is no such file",
    ]


@pytest.mark.parametrize(
    ("keys", "value", "reason"),
    [
        (("images",), None, 'a list "images"'),
        (("categories",), [1], 'a list "categories" of objects'),
        (("images", 0, "id"), None, r'images\[0\] must have an "id"'),
        (("images", 0, "id"), [1], r'images\[0\] must have an "id"'),
        (("images", 0, "id"), 1, r"images\[1\] has the id of another image"),
        (("images", 0, "file_name"), 7, 'must have a "file_name"'),
        (("categories", 0, "name"), "", r"categories\[0\]: it has no label"),
        (("categories", 0, "name"), 3, r"categories\[0\]: it has no name"),
        (("categories", 0, "id"), 8, r"categories\[1\]: its id is not its own"),
        (("annotations", 2, "category_id"), 9, r"annotations\[2\] has an unknown category_id, 9"),
        (("annotations", 2, "image_id"), "x", r"annotations\[2\] has an unknown image_id, 'x'"),
        (("annotations", 2, "image_id"), True, 'must have an "image_id"'),
    ],
)
def test_broken_annotations_are_refused(
    tmp_path: Path, keys: tuple[Any, ...], value: Any, reason: str
) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        find_labelled(change(coco(tmp_path), *keys, to=value))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"images": ' + "[" * 100_000, '"\xff"'],
)
def test_what_is_not_coco_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, "latin1")
    with pytest.raises(InvalidInputError, match="is not a file of COCO annotations"):
        find_labelled(path)


def test_the_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evergrow.vision.images.labelled.coco._MAX_BYTES", 100)
    with pytest.raises(InvalidInputError, match="larger than 100 bytes"):
        find_labelled(coco(tmp_path))


def test_what_is_written_has_the_same_labels_again(tmp_path: Path) -> None:
    names = [name for name, _ in pictures(tmp_path / "images")]
    images = [tmp_path / "images" / name for name in names]
    labels = ["red", "a/b", "=1", None, "猫", "red"]
    path = tmp_path / "annotations.json"
    save_coco(path, images, labels, [0.5] * 6)
    found = find_labelled(path)
    assert found.paths == [image for image, label in zip(images, labels, strict=True) if label]
    assert found.labels.tolist() == [label for label in labels if label is not None]
    assert len(found.problems) == 1
    content = json.loads(path.read_text())
    assert content["images"][0] == {
        "id": 1, "file_name": "images/r0.png", "width": 32, "height": 24,
    }  # fmt: skip
    assert content["annotations"][0] == {
        "id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 32, 24], "area": 768,
        "iscrowd": 0, "score": 0.5,
    }  # fmt: skip


def test_sizes_are_those_of_the_upright_image(tmp_path: Path) -> None:
    turned = Image.fromarray(np.zeros((6, 8, 3), np.uint8))
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(tmp_path / "turned.jpg", exif=exif)
    save_coco(tmp_path / "a.json", [tmp_path / "turned.jpg"], ["x"])
    (crop,) = find_labelled(tmp_path / "a.json", crop=True).sources
    assert read_image(crop).shape == (8, 6, 3)


def test_a_bad_image_leaves_no_file(tmp_path: Path) -> None:
    images = [tmp_path / name for name, _ in pictures(tmp_path, "red", n=2)]
    images[1].write_bytes(b"no image")
    with pytest.raises(ImageError, match=r"r1\.png"):
        save_coco(tmp_path / "a.json", images, ["red"] * 2)
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        save_coco(tmp_path / "a.json", images[:1], [], [0.5])
    with pytest.raises(ValueError, match="argument 2 is longer"):
        save_coco(tmp_path / "a.json", images[:1], ["red"] * 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r0.png", "r1.png"]
