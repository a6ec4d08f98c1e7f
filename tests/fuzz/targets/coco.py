"""COCO annotations, next to a few images."""

from __future__ import annotations

import contextlib
import json
from random import Random
from typing import Any

import numpy as np
from PIL import Image

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.images.labelled.coco import ImageCrop
from evergrow.vision.images.labelled.finder import find_labelled
from evergrow.vision.images.labelled.labelled_images import check_label
from evergrow.vision.images.reader import read_image
from tests.fuzz.mutate_bytes import mutate_bytes
from tests.fuzz.mutations import mutate_json
from tests.fuzz.targets import Target
from tests.fuzz.targets.table import folder

_WORDS = (b"[[[[", b"NaN", b"1e999", b"null", b"../", b'"bbox"', b'"iscrowd": 1', b"\\ud800")


def run(content: bytes) -> None:
    Image.fromarray(np.zeros((4, 6, 3), np.uint8)).save(folder() / "a.png")
    path = folder() / "annotations.json"
    path.write_bytes(content)
    for crop in (False, True):
        with contextlib.suppress(InvalidInputError):
            found = find_labelled(path, crop=crop)
            assert len(found.sources) == len(found.labels) > 0
            assert all(check_label(label) is None for label in found.labels.tolist())
            for source in found.sources:
                file = source.path if isinstance(source, ImageCrop) else source
                assert file.resolve().is_relative_to(folder().resolve())  # type: ignore[union-attr]
                if crop:
                    with contextlib.suppress(InvalidInputError):
                        assert read_image(source).size > 0


def change(content: bytes, random: Random) -> bytes:
    with contextlib.suppress(ValueError, TypeError, RecursionError, IndexError, AttributeError):
        value = json.loads(content)
        if random.random() < 0.8 and isinstance(value, dict):
            mutate_json(value, random)
            return json.dumps(value).encode()
    return mutate_bytes(content, random, _WORDS)


def seeds() -> dict[str, bytes]:
    def of(*annotations: dict[str, Any]) -> bytes:
        images = [
            {"id": 1, "file_name": "a.png", "width": 6, "height": 4},
            {"id": "b", "file_name": "b/c.png"},
        ]
        categories = [{"id": 1, "name": "red"}, {"id": 2, "name": "green"}]
        return json.dumps(
            {"images": images, "categories": categories, "annotations": annotations}
        ).encode()

    one = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 3, 2.5]}
    other = {"image_id": 1, "category_id": 2, "bbox": [-1, 2, 99, 9], "iscrowd": 0}
    return {"one": of(one), "two": of(one, other), "whole": of({"image_id": "b", "category_id": 2})}


TARGET = Target(run, change, seeds)
