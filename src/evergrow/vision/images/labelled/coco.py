"""COCO annotations: images, categories, and which image or box belongs to which category."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from evergrow.foundation.errors import BadImage, InvalidInputError
from evergrow.foundation.files import open_regular
from evergrow.foundation.formatting import display_name, format_size, list_names
from evergrow.vision.images.decoder import decode_image
from evergrow.vision.images.labelled.labelled_images import (
    LabelledImages,
    check_label,
    label_array,
    require_images,
)
from evergrow.vision.images.labelled.named_files import NamedFiles
from evergrow.vision.images.sources import (
    ReadLimits,
    StoredImage,
    import_extra,
    read_content,
)

SUFFIX = ".json"

# That of all training images of COCO 2017 has 448 MB. Python objects take about ten times as much.
_MAX_BYTES = 1 << 29
_LISTS = ("images", "categories", "annotations")
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class ImageCrop(StoredImage):
    """A box of an image, as a PNG of its own.

    Parameters
    ----------
    path : Path
        The image.
    box : tuple of float
        Left, top, width and height in pixels of the upright image; what is outside is cut off.
    size : tuple of int, or None
        Width and height that the annotations say the image has.
    number : str
        The id of the annotation, for messages.
    """

    path: Path
    box: Box
    size: tuple[int, int] | None
    number: str

    @property
    def name(self) -> str:
        """The image and the annotation."""
        return f"{os.fspath(self.path)}#{self.number}"

    def read_bytes(self, limits: ReadLimits) -> bytes:
        """Decode the image, and encode the box."""
        # The content of a file is bytes.
        image = decode_image(cast(bytes, read_content(self.path, limits)), limits, None)
        if self.size not in (None, (image.width, image.height)):
            said = "{} x {}".format(*self.size or ())
            raise InvalidInputError(
                f"the annotations say {said} pixels, but upright it has {image.width} x "
                f"{image.height}: boxes would be elsewhere"
            )
        left, top, width, height = self.box
        right, bottom = math.ceil(left + width), math.ceil(top + height)
        cut = image.pixels[
            max(0, math.floor(top)) : max(0, bottom), max(0, math.floor(left)) : max(0, right)
        ]
        if not cut.size:
            raise InvalidInputError("the box is outside of the image")
        encoded = io.BytesIO()
        # Speed matters more than size: the bytes are decoded at once.
        import_extra("PIL.Image").fromarray(cut).save(encoded, "PNG", compress_level=1)
        return encoded.getvalue()


@dataclass(frozen=True)
class _Annotation:
    category: str
    box: Box | None
    number: str
    is_crowd: bool


@dataclass(frozen=True)
class _Image:
    name: str
    size: tuple[int, int] | None

    def problem(self, path: Path, reason: str, annotation: _Annotation | None = None) -> BadImage:
        """What is wrong with the image, or with an annotation of it."""
        which = "" if annotation is None else f" annotation {annotation.number}"
        return BadImage(None, f"{display_name(path)} image {self.name!r}{which}", reason)


def read_coco(path: Path, files: NamedFiles, *, crop: bool) -> LabelledImages:
    """List the images of annotations, each with its category; or all boxes, with ``crop``."""
    images, annotations = _parse(path)
    found: list[tuple[Path | StoredImage, str]] = []
    unreadable: list[BadImage] = []
    ignored: list[BadImage] = []
    for number, image in images.items():
        own = annotations.get(number, [])
        if not own:
            ignored.append(image.problem(path, "it has no annotation"))
            continue
        try:
            file = files.find(image.name)
            if crop:
                for one in own:
                    if one.is_crowd:
                        ignored.append(image.problem(path, "it is a crowd", one))
                    elif one.box is None:
                        unreadable.append(image.problem(path, "it has no box with an area", one))
                    else:
                        crop_of = ImageCrop(file, one.box, image.size, one.number)
                        found.append((crop_of, one.category))
            else:
                found.append((file, _only_category(own)))
        except InvalidInputError as error:
            unreadable.append(image.problem(path, str(error)))
    problems = (*unreadable, *ignored)
    require_images(found, problems, path, "boxes" if crop else "images")
    return LabelledImages(
        [source for source, _ in found],
        label_array([label for _, label in found], path),
        problems,
        tuple(unreadable),
        root=path,
    )


def _only_category(annotations: list[_Annotation]) -> str:
    names = sorted({one.category for one in annotations})
    if len(names) > 1:
        raise InvalidInputError(
            f"it has annotations of {len(names)} categories ({list_names(names)}): use --crop "
            "(crop=True in Python) to take each box as an image"
        )
    return names[0]


def is_coco(path: str | os.PathLike[str]) -> bool:
    """Whether a JSON file begins like COCO annotations."""
    with open_regular(path) as file:
        beginning = file.read(1 << 16)
    return any(f'"{name}"'.encode() in beginning for name in (*_LISTS, "licenses"))


def _parse(path: Path) -> tuple[dict[Any, _Image], dict[Any, list[_Annotation]]]:
    try:
        content = _read(path)
        return _parse_images(content), _parse_annotations(content)
    except InvalidInputError as error:
        reason = str(error)
    except RecursionError:
        reason = "it is nested too deeply"
    raise InvalidInputError(f"{display_name(path)} is not a file of COCO annotations: {reason}")


def _read(path: Path) -> dict[str, list[Any]]:
    with open_regular(path) as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise InvalidInputError(f"it is larger than {format_size(_MAX_BYTES)}")
    try:
        found = json.loads(content)
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidInputError("it must be an object")
    for name in _LISTS:
        entries = found.get(name)
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            raise InvalidInputError(f'it must have a list "{name}" of objects')
    return {name: found[name] for name in _LISTS}


def _parse_images(content: Mapping[str, list[Any]]) -> dict[Any, _Image]:
    images: dict[Any, _Image] = {}
    for place, entry in enumerate(content["images"]):
        where = f"images[{place}]"
        number, name = _identity(entry, "id", where), entry.get("file_name")
        if not isinstance(name, str) or not name:
            raise InvalidInputError(f'{where} must have a "file_name"')
        if number in images:
            raise InvalidInputError(f"{where} has the id of another image, {number!r}")
        width, height = entry.get("width"), entry.get("height")
        is_known = all(type(one) is int and one > 0 for one in (width, height))
        images[number] = _Image(name, (width, height) if is_known else None)
    return images


def _parse_annotations(content: Mapping[str, list[Any]]) -> dict[Any, list[_Annotation]]:
    names: dict[Any, str] = {}
    for place, entry in enumerate(content["categories"]):
        number, name = _identity(entry, "id", f"categories[{place}]"), entry.get("name")
        fault = check_label(name) if isinstance(name, str) else "it has no name"
        if fault is not None or number in names:
            raise InvalidInputError(f"categories[{place}]: {fault or 'its id is not its own'}")
        names[number] = name.strip()
    known = {_identity(entry, "id", "images") for entry in content["images"]}
    found: dict[Any, list[_Annotation]] = {}
    for place, entry in enumerate(content["annotations"]):
        where = f"annotations[{place}]"
        image, category = (_identity(entry, key, where) for key in ("image_id", "category_id"))
        if category not in names:
            raise InvalidInputError(f"{where} has an unknown category_id, {category!r}")
        if image not in known:
            raise InvalidInputError(f"{where} has an unknown image_id, {image!r}")
        number = str(entry["id"]) if isinstance(entry.get("id"), (int, str)) else str(place)
        one = _Annotation(names[category], _box(entry), number, bool(entry.get("iscrowd")))
        found.setdefault(image, []).append(one)
    return found


def _identity(entry: Mapping[str, Any], key: str, where: str) -> int | str:
    value = entry.get(key)
    if not isinstance(value, (int, str)) or isinstance(value, bool):
        raise InvalidInputError(f'{where} must have an "{key}", a number or text')
    return value


def _box(entry: Mapping[str, Any]) -> Box | None:
    """Left, top, width and height; None if there is no box, or an empty one."""
    box = entry.get("bbox")
    if not isinstance(box, list) or len(box) != 4:
        return None
    if not all(isinstance(one, (int, float)) and abs(one) < 1e9 for one in box):
        return None
    return tuple(map(float, box)) if box[2] > 0 and box[3] > 0 else None  # type: ignore[return-value]
