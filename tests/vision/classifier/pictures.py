"""Drawn pictures: waves whose length and colour depend on the class."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from sklearn.base import BaseEstimator, TransformerMixin

from evergrow.vision import read_image

COLOURS = {
    "red": (220, 30, 30),
    "green": (30, 200, 40),
    "blue": (30, 40, 220),
    "grey": (20, 20, 20),
}


def picture(colour: str, seed: int) -> npt.NDArray[np.uint8]:
    random = np.random.default_rng(seed)
    _, x = np.mgrid[:24, :32]
    length = 1 + list(COLOURS).index(colour)
    waves = 0.8 + 0.2 * np.sin(x / length + random.uniform(0, 6))
    noisy = waves[..., None] * np.array(COLOURS[colour]) + random.normal(0, 8, (24, 32, 3))
    return np.clip(noisy, 0, 255).astype(np.uint8)


def pictures(*colours: str, n: int = 6, seed: int = 0) -> tuple[list[Any], npt.NDArray[np.str_]]:
    images = [picture(colour, seed + i) for colour in colours for i in range(n)]
    return images, np.repeat(np.array(colours), n)


def encode_png(image: npt.NDArray[np.uint8]) -> bytes:
    content = io.BytesIO()
    Image.fromarray(image).save(content, "PNG")
    return content.getvalue()


def folder_of(root: Path, *colours: str, n: int = 6, seed: int = 0) -> Path:
    """A folder with one folder of pictures per colour."""
    for colour in colours:
        (root / colour).mkdir(parents=True, exist_ok=True)
        for i in range(n):
            Image.fromarray(picture(colour, seed + i)).save(root / colour / f"{seed + i}.png")
    return root


class MeanColours(TransformerMixin, BaseEstimator):
    """A transformer of images that is not Evergrow's."""

    def fit(self, images: Any, y: Any = None) -> Any:
        self.first_ = read_image(images[0]).mean()
        return self

    def transform(self, images: Any) -> Any:
        return np.array([read_image(image).mean(axis=(0, 1)) / 255 for image in images])
