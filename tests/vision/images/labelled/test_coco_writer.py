"""COCO annotations that are written: they can be read again, and are complete or not there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evergrow.foundation.errors import ImageError
from evergrow.vision import find_labelled, read_image, save_coco
from tests.vision.images.labelled.files import pictures


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
