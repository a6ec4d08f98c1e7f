"""Decision maps: the prediction of a classifier at every point of the plane."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.research.datasets import Dataset

# Pixels count up to this distance from a sample, in half widths of the map.
NEAR = 0.08


@dataclass(frozen=True)
class Plane:
    """A square of the plane, divided into pixels; the first row is the lowest."""

    centre: tuple[float, float]
    half: float
    n_pixels: int

    @classmethod
    def around(cls, X: Array, n_pixels: int) -> Plane:
        """The square that contains nearly all samples."""
        low, high = np.quantile(X, (0.005, 0.995), axis=0)
        x, y = ((low + high) / 2).tolist()
        return cls((x, y), float(1.05 * (high - low).max() / 2), n_pixels)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top."""
        (x, y), half = self.centre, self.half
        return x - half, x + half, y - half, y + half

    def places(self) -> Array:
        """Centres of all pixels, shape (n_pixels ** 2, 2)."""
        steps = (2 * np.arange(self.n_pixels) + 1) / self.n_pixels - 1
        x, y = np.meshgrid(self.half * steps, self.half * steps)
        centres = np.column_stack([x.ravel(), y.ravel()]) + np.array(self.centre)
        return np.asarray(centres, dtype=np.float32)

    def near(self, X: Array) -> Array:
        """Whether each pixel is near a sample, shape (n_pixels, n_pixels)."""
        from scipy.spatial import KDTree

        distances, _ = KDTree(X).query(self.places())
        return np.reshape(distances < NEAR * self.half, (self.n_pixels, self.n_pixels))


def boundary_length(answers: Array, counted: Array) -> float:
    """Length of the borders between predictions, where they count, in widths of the map.

    By the Cauchy-Crofton formula: changes of the prediction are counted along rows, columns and
    both diagonals. Rows and columns alone would not distinguish a staircase from a straight line.
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


def project(data: Dataset) -> Dataset:
    """Project data with more than two features onto their first two principal components."""
    if data.X_train.shape[1] == 2:
        return data
    mean = data.X_train.mean(axis=0)
    _, _, directions = np.linalg.svd(data.X_train - mean, full_matrices=False)
    train, test = ((X - mean) @ directions[:2].T for X in (data.X_train, data.X_test))
    return replace(data, X_train=train, X_test=test)


def pack(values: Array) -> str:
    """Bytes as compressed text, which a row of a run can hold."""
    return base64.b64encode(zlib.compress(values.astype(np.uint8).tobytes(), 9)).decode()


def unpack(text: str, shape: Sequence[int]) -> Array:
    """The array of a packed text."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(shape)
