"""Square patches of an image, at random or on a grid."""

from __future__ import annotations

import numbers
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Fraction, Integer, Rule, check_parameters
from evergrow.storage.models.header import plain_parameters
from evergrow.vision.images.parameters import instance_of

Boxes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

# More patches or pixels than any image has.
_MAX = 1 << 24


@dataclass(frozen=True)
class Patches:
    """The base of both kinds of patches."""

    def check(self) -> None:
        """Raise a ``ValueError`` for an invalid parameter.

        :meta private:
        """
        raise NotImplementedError

    def limited(self, n: int) -> Self:
        """The same, with at most this many patches.

        :meta private:
        """
        return replace(self, n=n)  # type: ignore[call-arg]

    def boxes(self, shape: tuple[int, ...], seed: Any, mask: Mask | None = None) -> Boxes:
        """Place the patches of one image.

        Parameters
        ----------
        shape : (int, int)
            Height and width of the image.
        seed : int, sequence of int or numpy.random.Generator
            The same seed gives the same patches.
        mask : bool ndarray of shape (height, width), default=None
            Where the centres of patches may lie, perhaps of none on a grid; None for anywhere.

        Returns
        -------
        boxes : int32 ndarray of shape (n_patches, 3)
            Left, top and side of each patch in pixels.
        """
        self.check()
        _check_shape(shape)
        return self._place(shape, seed, None if mask is None else check_mask(mask, shape))

    def _place(self, shape: tuple[int, ...], seed: Any, mask: Mask | None) -> Boxes:
        raise NotImplementedError


@dataclass(frozen=True)
class RandomPatches(Patches):
    """Square patches at random positions, with log-uniform random sizes.

    The size of a patch is drawn first, then its position inside the image. With a mask, the centre
    of the patch must be on the mask. In an image smaller than `min_size`, patches are as large as
    its shorter side.

    Parameters
    ----------
    n : int, default=1000
        Number of patches per image. More patches give more stable results and take longer.
    min_size : int, default=16
        Side of the smallest patch in pixels. Small patches show texture, large ones object parts.
    max_size : float or int, default=0.3
        Side of the largest patch: a share of the shorter side of the image, or pixels if it is an
        integer.

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
        "n": [Integer(1, _MAX)],
        "min_size": [Integer(1, _MAX)],
        "max_size": [Fraction(), Integer(1, _MAX)],
    }

    def check(self) -> None:
        """Raise a ``ValueError`` for an invalid parameter.

        :meta private:
        """
        check_parameters(vars(self), self._rules)
        if self._in_pixels() and self.max_size < self.min_size:
            raise InvalidInputError(
                f"max_size must be at least min_size, {self.min_size}, got {self.max_size}"
            )

    def _in_pixels(self) -> bool:
        return isinstance(self.max_size, numbers.Integral)

    def _place(self, shape: tuple[int, ...], seed: Any, mask: Mask | None) -> Boxes:
        random = np.random.default_rng(seed)
        # One row per patch: a smaller n gives the first of these patches.
        uniform = random.random((self.n, 3))
        sizes, positions = self._sizes(shape, uniform[:, 0]), uniform[:, 1:]
        if mask is None:
            free = np.array(shape[::-1]) - sizes[:, None] + 1
            corners = np.minimum((positions * free).astype(np.int64), free - 1)
            return np.column_stack([corners, sizes]).astype(np.int32)
        return _place_on_mask(mask, sizes, positions[:, 0])

    def _sizes(
        self, shape: tuple[int, ...], uniform: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int64]:
        side = min(shape)
        largest = min(int(self.max_size * (1 if self._in_pixels() else side)), side)
        smallest = min(self.min_size, side)
        largest = max(largest, smallest)
        # Each integer size gets the probability of all real sizes from it to the next.
        sizes = smallest * ((largest + 1) / smallest) ** uniform
        return np.clip(sizes.astype(np.int64), smallest, largest)


@dataclass(frozen=True)
class DensePatches(Patches):
    """Square patches on a regular grid, of one size or several.

    The grid is centred. Patches are never larger than the shorter side of the image.

    Parameters
    ----------
    step : int, default=10
        Pixels from one patch to the next. A smaller step gives more patches and takes longer.
    size : int or tuple of int, default=20
        Side of the patches in pixels. Several sizes give one grid each.
    n : int, default=None
        Maximum number of patches per image, drawn at random from the grid. None uses all. A sample
        is enough to learn visual words.

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
        "step": [Integer(1, _MAX)],
        "size": [Integer(1, _MAX)],
    }

    def _all_sizes(self) -> tuple[int, ...]:
        return tuple(self.size) if isinstance(self.size, (tuple, list)) else (self.size,)

    def check(self) -> None:
        """Raise a ``ValueError`` for an invalid parameter.

        :meta private:
        """
        sizes = self._all_sizes()
        if not sizes:
            raise InvalidInputError("size must have at least one value, got ()")
        for size in sizes:
            check_parameters({"step": self.step, "size": size}, self._rules)
        if self.n is not None:
            check_parameters({"n": self.n}, {"n": [Integer(1, _MAX)]})

    def _place(self, shape: tuple[int, ...], seed: Any, mask: Mask | None) -> Boxes:
        boxes = np.concatenate([self._grid(shape, size) for size in self._all_sizes()])
        if mask is not None:
            centres = boxes[:, :2] + boxes[:, 2:] // 2
            boxes = boxes[mask[centres[:, 1], centres[:, 0]]]
        if self.n is not None and self.n < len(boxes):
            random = np.random.default_rng(seed)
            boxes = boxes[np.sort(random.choice(len(boxes), self.n, replace=False))]
        return boxes

    def _grid(self, shape: tuple[int, ...], size: int) -> Boxes:
        size = min(size, *shape)
        ys, xs = (np.arange(((n - size) % self.step) // 2, n - size + 1, self.step) for n in shape)
        tops, lefts = (grid.ravel() for grid in np.meshgrid(ys, xs, indexing="ij"))
        return np.column_stack([lefts, tops, np.full_like(tops, size)]).astype(np.int32)


# The classes by name, for model files.
PATCHES: dict[str, type[Patches]] = {kind.__name__: kind for kind in (RandomPatches, DensePatches)}
IS_PATCHES = instance_of(Patches, " or ".join(f"{name}(...)" for name in PATCHES))


def patches_to_json(patches: Patches) -> dict[str, Any]:
    """The class and parameters of patches."""
    return {"kind": type(patches).__name__, **plain_parameters(asdict(patches))}


def patches_from_json(entry: Any) -> Patches:
    """Rebuild patches; a ``ValueError`` for anything else."""
    if not isinstance(entry, dict) or entry.get("kind") not in PATCHES:
        raise InvalidInputError(f"patches must be one of {sorted(PATCHES)}, got {entry!r}")
    options = {name: value for name, value in entry.items() if name != "kind"}
    if isinstance(options.get("size"), list):
        options["size"] = tuple(options["size"])
    patches = PATCHES[entry["kind"]](**options)
    patches.check()
    return patches


def patches_per_image(patches: Any, total: int, n_images: int) -> int:
    """Number of patches to learn from per image, for about ``total`` of them.

    Never more than an image is described with later: training patches should be like those in use,
    and ``patches.n`` is a limit on the work.

    >>> patches_per_image(RandomPatches(50), 100, 30)
    4
    >>> patches_per_image(RandomPatches(50), 100_000, 30)
    50
    """
    wanted = -(-total // max(1, n_images))
    return wanted if patches.n is None else min(wanted, patches.n)


def check_mask(mask: npt.ArrayLike, shape: tuple[int, ...]) -> Mask:
    """Return the mask as an array; a ``ValueError`` if it is empty or of another shape."""
    checked = np.asarray(mask)
    if checked.dtype != np.bool_ or checked.shape != tuple(shape):
        raise InvalidInputError(
            f"a mask must be a bool array of shape {tuple(shape)}, "
            f"got {checked.dtype} of shape {checked.shape}"
        )
    if not checked.any():
        raise InvalidInputError("the mask is empty: at least one pixel must be True")
    return checked


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or not all(Integer(1).admits(side) for side in shape):
        raise InvalidInputError(
            f"shape must be a height and a width of at least one pixel, got {tuple(shape)}"
        )


def _place_on_mask(
    mask: Mask, sizes: npt.NDArray[np.int64], uniform: npt.NDArray[np.float64]
) -> Boxes:
    """Place patches of these sizes, or the largest that fit, with their centres on the mask."""
    ys, xs = np.nonzero(mask)
    height, width = mask.shape
    # The largest patch around each pixel: size // 2 pixels lie before its centre.
    largest = np.minimum.reduce([2 * xs + 1, 2 * (width - xs), 2 * ys + 1, 2 * (height - ys)])
    order = np.argsort(-largest, kind="stable")
    sizes = np.minimum(sizes, largest[order[0]])
    n_fitting = np.searchsorted(-largest[order], -sizes, side="right")
    chosen = order[np.minimum((uniform * n_fitting).astype(np.int64), n_fitting - 1)]
    lefts, tops = xs[chosen] - sizes // 2, ys[chosen] - sizes // 2
    return np.column_stack([lefts, tops, sizes]).astype(np.int32)
