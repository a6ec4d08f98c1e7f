"""COCO annotations of whole images, written image by image."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Self, cast

from evergrow.foundation.errors import ImageError
from evergrow.foundation.files import atomic_write
from evergrow.foundation.formatting import display_name
from evergrow.vision.images.decoder import read_upright_size
from evergrow.vision.images.sources import DEFAULT_LIMITS, read_content

_IN_MEMORY = 1 << 20


class CocoWriter:
    """Writes annotations image by image; memory does not grow with their number.

    A context manager.

    Examples
    --------
    >>> import io
    >>> target = io.BytesIO()
    >>> with CocoWriter() as writer:
    ...     writer.add("cat/1.jpg", (640, 480), "cat", score=0.9)
    ...     writer.finish(target)
    >>> json.loads(target.getvalue())["annotations"][0]["score"]
    0.9
    """

    def __init__(self) -> None:
        self._images = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._annotations = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._categories: dict[str, int] = {}
        self._n_images = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the temporary files."""
        self._images.close()
        self._annotations.close()

    def add(
        self, name: str, size: tuple[int, int], label: str | None, score: float | None = None
    ) -> None:
        """Add an image with its upright size; one without a label has no annotation."""
        self._n_images += 1
        number, (width, height) = self._n_images, size
        image = {"id": number, "file_name": name, "width": width, "height": height}
        _append(self._images, image)
        if label is None:
            return
        category = self._categories.setdefault(label, len(self._categories) + 1)
        # The whole image is the box: many programs expect one.
        area = {"bbox": [0, 0, width, height], "area": width * height, "iscrowd": 0}
        entry: dict[str, Any] = {"id": number, "image_id": number, "category_id": category, **area}
        _append(self._annotations, entry if score is None else {**entry, "score": score})

    def finish(self, file: IO[bytes]) -> None:
        """Write all of it."""
        categories = [{"id": number, "name": name} for name, number in self._categories.items()]
        for before, part in (
            (b'{"images": [', self._images),
            (b'],\n"annotations": [', self._annotations),
        ):
            file.write(before)
            part.seek(0)
            shutil.copyfileobj(part, file)
        file.write(b'],\n"categories": ' + json.dumps(categories).encode() + b"}\n")


def _append(part: IO[bytes], entry: Mapping[str, Any]) -> None:
    part.write((b",\n" if part.tell() else b"\n") + json.dumps(entry).encode())


def save_coco(
    path: str | os.PathLike[str],
    images: Iterable[str | os.PathLike[str]],
    labels: Iterable[str | None],
    scores: Iterable[float] | None = None,
) -> None:
    """Write COCO annotations that name image files relative to the folder of the annotations.

    Each image has one annotation, whose box is the whole image. :func:`find_labelled` reads them
    again.

    Parameters
    ----------
    path : path
        File to write; an existing one is replaced when the new one is complete.
    images : iterable of path
        Image files. Their headers are read for their sizes.
    labels : iterable of (str or None)
        The class of each image; None for no annotation.
    scores : iterable of float, default=None
        The probability of each class.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from PIL import Image
    >>> from evergrow.vision import find_labelled, save_coco
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     image = os.path.join(folder, "1.png")
    ...     Image.fromarray(np.zeros((3, 4), np.uint8)).save(image)
    ...     save_coco(os.path.join(folder, "annotations.json"), [image], ["dark"])
    ...     find_labelled(os.path.join(folder, "annotations.json")).labels.tolist()
    ['dark']
    """
    folder = os.path.dirname(os.path.abspath(path))
    with atomic_write(path) as file, CocoWriter() as writer:
        pairs = zip(images, labels, strict=True)
        rows = (
            ((*pair, None) for pair in pairs)
            if scores is None
            else ((*pair, score) for pair, score in zip(pairs, scores, strict=True))
        )
        for image, label, score in rows:
            writer.add(relative_name(image, folder), upright_size(image), label, score)
        writer.finish(file)


def relative_name(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> str:
    """The name of a file relative to a folder, with slashes on every system."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        # On another drive of Windows.
        return Path(os.path.abspath(path)).as_posix()


def upright_size(image: str | os.PathLike[str]) -> tuple[int, int]:
    """Width and height of an image file, upright, from its header."""
    # The content of a file is bytes.
    content = cast(bytes, read_content(image, DEFAULT_LIMITS))
    try:
        return read_upright_size(content, DEFAULT_LIMITS)
    except ValueError as error:
        raise ImageError(display_name(image), str(error)) from error
