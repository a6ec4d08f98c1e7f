"""The labels of a folder of shards, stored as class indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError

# The code of a missing label.
UNLABELLED = -1

Codes = npt.NDArray[np.int32]


class ShardLabels:
    """The labels of shards, which estimators accept as ``y``.

    They are stored as class indices and take 4 bytes each. ``numpy.asarray`` returns the labels.
    Comparison with a label returns a mask. Slices and masks return an object of this type.

    Parameters
    ----------
    codes : ndarray of shape (n_labels,) and dtype int32
        Indices into ``classes``; -1 for a missing label.
    classes : ndarray
        Integers or strings, in the order in which they were added.

    Examples
    --------
    >>> import evergrow, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = evergrow.write_shards(folder, [([[0.0], [1.0], [8.0]], ["a", "a", "b"])])
    ...     shards.labels.tolist(), (shards.labels == "a").tolist()
    (['a', 'a', 'b'], [True, True, False])
    """

    ndim = 1
    # Comparison is element-wise.
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, codes: Codes, classes: npt.NDArray[Any]) -> None:
        self.codes, self.classes = codes, classes
        self.shape, self.dtype = (len(codes),), classes.dtype

    @property
    def n_unlabelled(self) -> int:
        """Number of missing labels."""
        return int(np.count_nonzero(self.codes == UNLABELLED))

    def check_all_labelled(self) -> None:
        """Raise an error if labels are missing."""
        if self.n_unlabelled:
            first = int(np.argmax(self.codes == UNLABELLED))
            raise InvalidInputError(
                f"{self.n_unlabelled} of {len(self)} labels are missing, the first at index "
                f"{first}: select the labelled rows or images with "
                "numpy.flatnonzero(shards.labels.codes >= 0)"
            )

    def __len__(self) -> int:
        """Count the labels."""
        return len(self.codes)

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """Return the labels; an error if some are missing."""
        if copy is False:
            raise InvalidInputError(
                "labels stored as indices cannot become an array without a copy"
            )
        self.check_all_labelled()
        labels: npt.NDArray[Any] = self.classes[self.codes]
        return labels if dtype is None else labels.astype(dtype)

    def __getitem__(self, index: Any) -> Any:
        """Return one label, None if it is missing, or several as an object of this type."""
        found = self.codes[index]
        if np.ndim(found) == 0:
            return None if found == UNLABELLED else self.classes[found]
        return ShardLabels(found, self.classes)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the labels, None for a missing one."""
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """Return the labels as Python values, None for a missing one."""
        # None is the last name, at index -1.
        names = [*self.classes.tolist(), None]
        return [names[code] for code in self.codes.tolist()]

    def __eq__(self, other: object) -> Any:
        """Compare element-wise; a missing label equals nothing."""
        if isinstance(other, ShardLabels):
            other = np.array(other.tolist(), dtype=object)
        if np.ndim(other) == 0:  # type: ignore[arg-type]
            return (self.classes == other)[self.codes] & (self.codes != UNLABELLED)
        found = np.array(self.tolist(), dtype=object) == np.asarray(other)
        return found & (self.codes != UNLABELLED)

    def __ne__(self, other: object) -> Any:
        """Compare element-wise."""
        return ~(self == other)

    def __repr__(self) -> str:
        """Show the numbers of labels and classes."""
        return f"ShardLabels({len(self)} labels, {len(self.classes)} classes)"
