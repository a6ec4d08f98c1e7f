"""Two round Gaussians, one wide and common, one narrow and rare, and their Bayes boundaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["COMMON", "RARE", "Circle", "Gaussian", "boundary", "sampled"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Gaussian:
    """A class of samples spread equally in all directions."""

    mean: tuple[float, float]
    deviation: float

    def sampled(self, rng: np.random.Generator, n: int) -> Array:
        """So many samples."""
        return np.array(self.mean) + self.deviation * rng.standard_normal((n, 2))


# The caption of fig. 1: class 1, whose share is gamma, and class -1.
COMMON = Gaussian((-1.0, 0.0), 1.0)
RARE = Gaussian((1.0, 0.0), 0.3)


@dataclass(frozen=True)
class Circle:
    """A boundary: the rare class is inside."""

    centre: tuple[float, float]
    radius: float

    def inside(self, X: Array) -> Array:
        """Which samples are inside."""
        found: Array = np.hypot(*(X - np.array(self.centre)).T) < self.radius
        return found

    def at(self, radii: Array) -> Array:
        """Points at these distances from the centre, one per direction all around."""
        angles = 2 * np.pi * np.arange(len(radii)) / len(radii)
        around = np.column_stack([np.cos(angles), np.sin(angles)])
        points: Array = np.array(self.centre) + radii[:, None] * around
        return points


def boundary(gamma: float, *, rebalanced: bool) -> Circle:
    """Where both classes are equally likely, Eq. (2) and (6), or weigh the same, Eq. (7) and (8).

    Of two round Gaussians the logarithm of the ratio is a quadratic form whose square terms are
    alike in all directions, so the boundary is a circle.
    """
    odds = 1.0 if rebalanced else (1 - gamma) / gamma
    precision, common = 1 / RARE.deviation**2, 1 / COMMON.deviation**2
    curvature = precision - common
    rare_mean, common_mean = np.array(RARE.mean), np.array(COMMON.mean)
    centre = (precision * rare_mean - common * common_mean) / curvature
    level = 2 * np.log(odds) + 4 * np.log(COMMON.deviation / RARE.deviation)
    offset = precision * rare_mean @ rare_mean - common * common_mean @ common_mean
    square = centre @ centre + (level - offset) / curvature
    return Circle((float(centre[0]), float(centre[1])), float(np.sqrt(max(square, 0.0))))


def sampled(gamma: float, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Samples of both classes, a share ``gamma`` of the common one; labels 1 and -1."""
    n_common = round(gamma * n)
    X = np.concatenate([COMMON.sampled(rng, n_common), RARE.sampled(rng, n - n_common)])
    return X, np.repeat([1, -1], [n_common, n - n_common])
