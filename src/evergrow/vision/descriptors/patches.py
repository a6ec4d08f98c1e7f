"""Where to look in an image: square patches at random or on a grid."""

from __future__ import annotations

import numbers
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow.foundation.params import Fraction, Integer, Rule, check_parameters
from evergrow.storage.modelfile import plain_parameters

__all__ = [
    "PATCHES",
    "AnyPatches",
    "DensePatches",
    "Patches",
    "RandomPatches",
    "checked_mask",
    "patches_from_json",
    "patches_to_json",
]

Boxes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

# More patches or pixels than any picture has.
_MOST = 1 << 24


@dataclass(frozen=True)
class RandomPatches:
    """Squares at random positions with log-uniform random sizes.

    The size of a patch is drawn first, then its place among all where it lies inside the image
    and, with a mask, its centre on the mask. If a size fits nowhere on the mask, the largest that
    does takes its place. In an image smaller than ``min_size`` patches are as large as its shorter
    side.

    Parameters
    ----------
    n : int, default=1000
        Patches per image. More give steadier answers and take longer.
    min_size : int, default=16
        Side of the smallest patch in pixels. Smaller ones show texture, larger ones parts.
    max_size : float or int, default=0.3
        Side of the largest: a share of the image's shorter side, or an integer in pixels.

    Examples
    --------
    >>> from evergrow.vision import RandomPatches
    >>> RandomPatches(3).boxes((100, 200), seed=0).shape
    (3, 3)
    """

    n: int = 1000
    min_size: int = 16
    max_size: float | int = 0.3

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n": [Integer(1, _MOST)],
        "min_size": [Integer(1, _MOST)],
        "max_size": [Fraction(), Integer(1, _MOST)],
    }

    def check(self) -> None:
        """Raise a ``ValueError`` for a parameter that is not allowed."""
        check_parameters(vars(self), self._rules)
        if self._in_pixels() and self.max_size < self.min_size:
            raise ValueError(
                f"max_size must be at least min_size, {self.min_size}, got {self.max_size}"
            )

    def _in_pixels(self) -> bool:
        return isinstance(self.max_size, numbers.Integral)

    def limited(self, n: int) -> RandomPatches:
        """The same patches, but this many."""
        return replace(self, n=n)

    def boxes(self, shape: tuple[int, ...], seed: Any, mask: Mask | None = None) -> Boxes:
        """Draw patches of one image.

        Parameters
        ----------
        shape : (int, int)
            Height and width of the image.
        seed : int, sequence of int or numpy.random.Generator
            The same seed draws the same patches.
        mask : bool ndarray of shape (height, width), default=None
            Where the centres of the patches may lie; None for everywhere.

        Returns
        -------
        boxes : int32 ndarray of shape (n, 3)
            Left, top and side of each patch in pixels.
        """
        self.check()
        _check_shape(shape)
        random = np.random.default_rng(seed)
        # A row per patch: fewer patches are the first of more.
        uniform = random.random((self.n, 3))
        sizes, places = self._sizes(shape, uniform[:, 0]), uniform[:, 1:]
        if mask is None:
            free = np.array(shape[::-1]) - sizes[:, None] + 1
            corners = np.minimum((places * free).astype(np.int64), free - 1)
            return np.column_stack([corners, sizes]).astype(np.int32)
        return _on_mask(checked_mask(mask, shape), sizes, places[:, 0])

    def _sizes(
        self, shape: tuple[int, ...], uniform: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int64]:
        side = min(shape)
        largest = min(int(self.max_size * (1 if self._in_pixels() else side)), side)
        smallest = min(self.min_size, side)
        largest = max(largest, smallest)
        # Each whole size has the probability of all sizes from it to the next.
        sizes = smallest * ((largest + 1) / smallest) ** uniform
        return np.clip(sizes.astype(np.int64), smallest, largest)


@dataclass(frozen=True)
class DensePatches:
    """Squares on a regular grid, of one size or several.

    The grid lies in the middle of the image. In an image smaller than a size, patches of that size
    are as large as its shorter side.

    Parameters
    ----------
    step : int, default=10
        Pixels from one patch to the next. Fewer describe more finely and take longer.
    size : int or tuple of int, default=20
        Side of the patches in pixels; several give one grid each.
    n : int, default=None
        Most patches per image, a random choice of the grid's; None for all. Some are enough to
        learn a vocabulary from.

    Examples
    --------
    >>> from evergrow.vision import DensePatches
    >>> DensePatches(step=10, size=20).boxes((40, 30), seed=0).tolist()
    [[0, 0, 20], [10, 0, 20], [0, 10, 20], [10, 10, 20], [0, 20, 20], [10, 20, 20]]
    """

    step: int = 10
    size: int | tuple[int, ...] = 20
    n: int | None = None

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "step": [Integer(1, _MOST)],
        "size": [Integer(1, _MOST)],
    }

    def _all_sizes(self) -> tuple[int, ...]:
        return tuple(self.size) if isinstance(self.size, (tuple, list)) else (self.size,)

    def check(self) -> None:
        """Raise a ``ValueError`` for a parameter that is not allowed."""
        sizes = self._all_sizes()
        if not sizes:
            raise ValueError("size must name at least one size, got ()")
        for size in sizes:
            check_parameters({"step": self.step, "size": size}, self._rules)
        if self.n is not None:
            check_parameters({"n": self.n}, {"n": [Integer(1, _MOST)]})

    def limited(self, n: int) -> DensePatches:
        """A random choice of this many of the patches, or all if there are fewer."""
        return replace(self, n=n)

    def boxes(self, shape: tuple[int, ...], seed: Any, mask: Mask | None = None) -> Boxes:
        """Lay the grid over one image.

        Parameters
        ----------
        shape : (int, int)
            Height and width of the image.
        seed : int, sequence of int or numpy.random.Generator
            Decides which patches stay if there are more than ``n``.
        mask : bool ndarray of shape (height, width), default=None
            Only patches whose centre lies on it stay, which may be none; None for all.

        Returns
        -------
        boxes : int32 ndarray of shape (n_patches, 3)
            Left, top and side of each patch in pixels, row by row.
        """
        self.check()
        _check_shape(shape)
        boxes = np.concatenate([self._grid(shape, size) for size in self._all_sizes()])
        if mask is not None:
            centres = boxes[:, :2] + boxes[:, 2:] // 2
            boxes = boxes[checked_mask(mask, shape)[centres[:, 1], centres[:, 0]]]
        if self.n is not None and self.n < len(boxes):
            random = np.random.default_rng(seed)
            boxes = boxes[np.sort(random.choice(len(boxes), self.n, replace=False))]
        return boxes

    def _grid(self, shape: tuple[int, ...], size: int) -> Boxes:
        size = min(size, *shape)
        ys, xs = (np.arange(((n - size) % self.step) // 2, n - size + 1, self.step) for n in shape)
        tops, lefts = (grid.ravel() for grid in np.meshgrid(ys, xs, indexing="ij"))
        return np.column_stack([lefts, tops, np.full_like(tops, size)]).astype(np.int32)


Patches = RandomPatches | DensePatches

PATCHES: dict[str, type[RandomPatches | DensePatches]] = {
    kind.__name__: kind for kind in (RandomPatches, DensePatches)
}


class AnyPatches:
    """A value that says where to look, as a rule for parameters."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        return isinstance(value, Patches)

    def __str__(self) -> str:
        """Say what is allowed."""
        return " or ".join(f"{name}(...)" for name in PATCHES)


def patches_to_json(patches: Patches) -> dict[str, Any]:
    """Patches as a model file holds them."""
    return {"kind": type(patches).__name__, **plain_parameters(asdict(patches))}


def patches_from_json(entry: Any) -> Patches:
    """Patches as a model file describes them; a ``ValueError`` for anything else."""
    if not isinstance(entry, dict) or entry.get("kind") not in PATCHES:
        raise ValueError(f"patches must be one of {sorted(PATCHES)}, got {entry!r}")
    options = {name: value for name, value in entry.items() if name != "kind"}
    if isinstance(options.get("size"), list):
        options["size"] = tuple(options["size"])
    patches = PATCHES[entry["kind"]](**options)
    patches.check()
    return patches


def checked_mask(mask: npt.ArrayLike, shape: tuple[int, ...]) -> Mask:
    """The mask of an image of this shape; a ``ValueError`` if it is none or empty."""
    checked = np.asarray(mask)
    if checked.dtype != np.bool_ or checked.shape != tuple(shape):
        raise ValueError(
            f"a mask must be a bool array of shape {tuple(shape)}, "
            f"got {checked.dtype} of shape {checked.shape}"
        )
    if not checked.any():
        raise ValueError("the mask is empty: at least one pixel must be True")
    return checked


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or not all(Integer(1).admits(side) for side in shape):
        raise ValueError(
            f"shape must be a height and a width of at least one pixel, got {tuple(shape)}"
        )


def _on_mask(mask: Mask, sizes: npt.NDArray[np.int64], uniform: npt.NDArray[np.float64]) -> Boxes:
    """Patches of these sizes, or the next smaller that fit, with centres on the mask."""
    ys, xs = np.nonzero(mask)
    height, width = mask.shape
    # The largest patch around each pixel: its centre has size // 2 pixels before it.
    room = np.minimum.reduce([2 * xs + 1, 2 * (width - xs), 2 * ys + 1, 2 * (height - ys)])
    order = np.argsort(-room, kind="stable")
    sizes = np.minimum(sizes, room[order[0]])
    n_fitting = np.searchsorted(-room[order], -sizes, side="right")
    chosen = order[np.minimum((uniform * n_fitting).astype(np.int64), n_fitting - 1)]
    lefts, tops = xs[chosen] - sizes // 2, ys[chosen] - sizes // 2
    return np.column_stack([lefts, tops, sizes]).astype(np.int32)
