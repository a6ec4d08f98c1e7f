"""Ragged arrays: images with different numbers of rows in one matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError


class RaggedRows:
    """Images whose rows lie one after the other in one matrix, in memory or on disk."""

    values: Any
    offsets: npt.NDArray[np.int64]

    # Comparing arrays gives no single answer, so `in` cannot be supported.
    __contains__ = None

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of rows of each image."""
        return np.diff(self.offsets)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    def __len__(self) -> int:
        """Count the images."""
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> npt.NDArray[Any]: ...
    @overload
    def __getitem__(self, index: slice | npt.NDArray[Any] | list[int]) -> RaggedArray: ...
    def __getitem__(self, index: Any) -> npt.NDArray[Any] | RaggedArray:
        """Return the rows of one image, as a view where possible, or several in memory."""
        if isinstance(index, (int, np.integer)):
            at = range(len(self))[index]
            rows = self.values[int(self.offsets[at]) : int(self.offsets[at + 1])]
            return cast("npt.NDArray[Any]", rows)
        wanted = np.arange(len(self))[index]
        parts = [self[int(at)] for at in wanted]
        values = np.concatenate(parts) if parts else self.values[:0]
        return RaggedArray(values, np.cumsum([0, *(len(part) for part in parts)]))


class RaggedArray(RaggedRows):
    """Matrices of the same width, stored one after the other in one matrix.

    Local features of images have this form: each image has its own number of patches, and each
    patch a descriptor of the same length. It can be indexed and iterated like a list of arrays, and
    most functions that accept one accept a list of arrays as well.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_features)
        The rows of all images, one image after the other.
    offsets : array-like of shape (n_images + 1,)
        Where the rows of each image begin; the last entry is ``n_rows``.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow import RaggedArray
    >>> images = RaggedArray.of([np.zeros((2, 3)), np.ones((1, 3))])
    >>> len(images), images[1], images.lengths
    (2, array([[1., 1., 1.]]), array([2, 1]))
    >>> images.per_row(["cat", "dog"])
    array(['cat', 'cat', 'dog'], dtype='<U3')
    """

    def __init__(self, values: npt.NDArray[Any], offsets: npt.ArrayLike) -> None:
        self.values: npt.NDArray[Any] = np.asarray(values)
        given = np.asarray(offsets)
        # An empty list has no integer type; it is rejected below.
        if given.dtype.kind not in "iu" and given.size:
            raise InvalidInputError(f"offsets must be integers, got {given.dtype}")
        self.offsets = given.astype(np.int64)
        if self.values.ndim != 2:
            raise InvalidInputError(f"values must have 2 dimensions, got {self.values.ndim}")
        flat = self.offsets.ndim == 1 and len(self.offsets) > 0
        if not flat or self.offsets[0] != 0 or (np.diff(self.offsets) < 0).any():
            raise InvalidInputError(
                "offsets must be a flat list that starts with 0 and never decreases"
            )
        if self.offsets[-1] != len(self.values):
            raise InvalidInputError(
                f"offsets must end with the number of rows, {len(self.values)}, "
                f"got {self.offsets[-1]}"
            )

    @classmethod
    def of(cls, images: Iterable[npt.ArrayLike]) -> RaggedArray:
        """Join matrices of the same width; a ragged array is returned unchanged."""
        if isinstance(images, RaggedArray):
            return images
        parts = [np.asarray(image) for image in images]
        if not parts:
            raise InvalidInputError("there must be at least one image")
        for i, part in enumerate(parts):
            if part.ndim != 2 or part.shape[1] != parts[0].shape[1]:
                # The first image sets the width of the others.
                columns = f" with {parts[0].shape[1]} columns" if i else ""
                raise InvalidInputError(
                    f"every image must be a matrix{columns}, number {i} has the shape {part.shape}"
                )
        return cls(np.concatenate(parts), np.cumsum([0, *(len(part) for part in parts)]))

    def per_row(self, per_image: npt.ArrayLike) -> npt.NDArray[Any]:
        """Repeat a value per image for each of its rows."""
        values = np.asarray(per_image)
        if not values.ndim:
            raise InvalidInputError(
                f"there must be one value for each of {len(self)} images, got {per_image!r}"
            )
        if len(values) != len(self):
            raise InvalidInputError(f"there are {len(self)} images, got {len(values)} values")
        return np.repeat(values, self.lengths, axis=0)

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        """Iterate over the images."""
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        """Show the numbers of images, rows and features."""
        return (
            f"RaggedArray({len(self)} images, {len(self.values)} rows, {self.n_features} features)"
        )
