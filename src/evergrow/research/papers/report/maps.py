"""Decision maps: what a classifier answers at every place of the plane."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.research.datasets import Dataset

__all__ = ["Plane", "boundary_length", "in_plane", "packed", "unpacked"]

Array = npt.NDArray[Any]

# How far from a sample, in halves of the map's width, its answers are still of interest.
NEAR = 0.08


@dataclass(frozen=True)
class Plane:
    """A square of the plane as pixels, rows from below."""

    centre: tuple[float, float]
    half: float
    n_pixels: int

    @classmethod
    def around(cls, X: Array, n_pixels: int) -> Plane:
        """The square that holds nearly all samples."""
        low, high = np.quantile(X, (0.005, 0.995), axis=0)
        x, y = ((low + high) / 2).tolist()
        return cls((x, y), float(1.05 * (high - low).max() / 2), n_pixels)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top."""
        (x, y), half = self.centre, self.half
        return x - half, x + half, y - half, y + half

    def places(self) -> Array:
        """Middles of all pixels, shape (n_pixels ** 2, 2)."""
        steps = (2 * np.arange(self.n_pixels) + 1) / self.n_pixels - 1
        x, y = np.meshgrid(self.half * steps, self.half * steps)
        middles: Array = np.column_stack([x.ravel(), y.ravel()]) + np.array(self.centre)
        return middles.astype(np.float32)

    def near(self, X: Array) -> Array:
        """Which pixels, of shape (n_pixels, n_pixels), lie near a sample."""
        from scipy.spatial import KDTree

        distances, _ = KDTree(X).query(self.places())
        return np.reshape(distances < NEAR * self.half, (self.n_pixels, self.n_pixels))


def boundary_length(answers: Array, counted: Array) -> float:
    """Length of the borders between answers where they count, in widths of the square map.

    By the formula of Cauchy and Crofton: changes of the answer are counted along rows, columns
    and both diagonals. Counting along rows and columns alone would not tell a staircase from the
    smooth line beside it.
    """
    n = len(answers)
    shifts = (
        (np.s_[1:, :], np.s_[:-1, :], 1.0),
        (np.s_[:, 1:], np.s_[:, :-1], 1.0),
        (np.s_[1:, 1:], np.s_[:-1, :-1], np.sqrt(0.5)),
        (np.s_[1:, :-1], np.s_[:-1, 1:], np.sqrt(0.5)),
    )
    crossings = sum(
        weight * np.count_nonzero((answers[one] != answers[other]) & counted[one] & counted[other])
        for one, other, weight in shifts
    )
    return float(np.pi / 8 * crossings / n)


def in_plane(data: Dataset) -> Dataset:
    """The data as they are, or their first two principal directions when there are more."""
    from dataclasses import replace

    if data.X_train.shape[1] == 2:
        return data
    mean = data.X_train.mean(axis=0)
    _, _, directions = np.linalg.svd(data.X_train - mean, full_matrices=False)
    train, test = ((X - mean) @ directions[:2].T for X in (data.X_train, data.X_test))
    return replace(data, X_train=train, X_test=test)


def packed(values: Array) -> str:
    """Bytes as short text, to be kept with the rows of a run."""
    return base64.b64encode(zlib.compress(values.astype(np.uint8).tobytes(), 9)).decode()


def unpacked(text: str, shape: Sequence[int]) -> Array:
    """What was packed."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(shape)
