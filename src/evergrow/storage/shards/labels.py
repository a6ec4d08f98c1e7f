"""The labels of a folder of shards: numbers of classes, and the classes by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["UNLABELLED", "ShardLabels"]

# The code of what has no label.
UNLABELLED = -1

Codes = npt.NDArray[np.int32]


class ShardLabels:
    """Labels that are kept as the number of their class, 4 bytes each however long its name.

    An array-like that estimators take as ``y``. ``numpy.asarray`` gives the labels themselves;
    comparing with one label gives a mask; slices and masks give labels of the same kind.

    Parameters
    ----------
    codes : ndarray of shape (n_labels,) and dtype int32
        Places in ``classes``; -1 where there is no label.
    classes : ndarray
        Integers or strings, those that came later after those that were there.

    Attributes
    ----------
    codes, classes : ndarray
        As above.
    """

    ndim = 1
    # Equality is one answer per label.
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, codes: Codes, classes: npt.NDArray[Any]) -> None:
        self.codes = codes
        self.classes = classes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the labels."""
        return self.classes.dtype

    @property
    def shape(self) -> tuple[int]:
        """Number of labels."""
        return (len(self.codes),)

    @property
    def n_unlabelled(self) -> int:
        """How many have no label."""
        return int(np.count_nonzero(self.codes == UNLABELLED))

    def check_all_labelled(self) -> None:
        """Raise a ``ValueError`` if some have no label."""
        if self.n_unlabelled:
            first = int(np.argmax(self.codes == UNLABELLED))
            raise ValueError(
                f"{self.n_unlabelled} of {len(self)} labels are missing, the first is number "
                f"{first}: choose rows or images that have one, by their numbers "
                "numpy.flatnonzero(shards.labels.codes >= 0)"
            )

    def __len__(self) -> int:
        """Count the labels."""
        return len(self.codes)

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """The labels themselves; a ``ValueError`` if some are missing."""
        if copy is False:
            raise ValueError("labels kept as numbers cannot become an array without a copy")
        self.check_all_labelled()
        labels: npt.NDArray[Any] = self.classes[self.codes]
        return labels if dtype is None else labels.astype(dtype)

    def __getitem__(self, index: Any) -> Any:
        """One label, None if it has none, or several as labels of this kind."""
        found = self.codes[index]
        if np.ndim(found) == 0:
            return None if found == UNLABELLED else self.classes[found]
        return ShardLabels(found, self.classes)

    def __iter__(self) -> Iterator[Any]:
        """Go through the labels, None where there is none."""
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The labels as Python's own values, None where there is none."""
        # None is the last of the names, which is where -1 points to.
        names = [*self.classes.tolist(), None]
        return [names[code] for code in self.codes.tolist()]

    def __eq__(self, other: object) -> Any:
        """Which labels are equal; those missing equal nothing."""
        if isinstance(other, ShardLabels):
            other = np.array(other.tolist(), dtype=object)
        if np.ndim(other) == 0:  # type: ignore[arg-type]
            return (self.classes == other)[self.codes] & (self.codes != UNLABELLED)
        found = np.array(self.tolist(), dtype=object) == np.asarray(other)
        return found & (self.codes != UNLABELLED)

    def __ne__(self, other: object) -> Any:
        """Which labels differ."""
        return ~(self == other)

    def __repr__(self) -> str:
        """Say how many there are, of how many classes."""
        return f"ShardLabels({len(self)} labels, {len(self.classes)} classes)"
