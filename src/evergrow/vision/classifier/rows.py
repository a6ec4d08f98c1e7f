"""The features of the images that were learnt, kept for forgetting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import ModelFileError
from evergrow.storage.modelfile import check_array

__all__ = ["Rows"]

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Rows:
    """Features and class columns, in the blocks they came in.

    Blocks, as joining them with every example that is taught would copy all that came before.
    """

    blocks: tuple[tuple[npt.NDArray[Any], Codes], ...] = ()

    def extend(self, values: npt.NDArray[Any], codes: Codes) -> Rows:
        """Append examples."""
        return Rows((*self.blocks, (values, codes)))

    def of(self, columns: list[int]) -> tuple[npt.NDArray[Any], Codes]:
        """All examples of some classes."""
        wanted = [(values, codes, np.isin(codes, columns)) for values, codes in self.blocks]
        return (
            np.concatenate([values[mask] for values, _, mask in wanted]),
            np.concatenate([codes[mask] for _, codes, mask in wanted]),
        )

    def relabel(self, columns: list[int]) -> Rows:
        """Class ``k`` becomes class ``columns[k]``, -1 leaves it out."""
        place = np.array(columns, dtype=np.int32)
        changed = [(values, place[codes]) for values, codes in self.blocks]
        left = [(values[codes >= 0], codes[codes >= 0]) for values, codes in changed]
        return Rows(tuple((values, codes) for values, codes in left if len(codes)))

    def to_tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays of a model file."""
        return {
            "rows.values": np.concatenate([values for values, _ in self.blocks]),
            "rows.codes": np.concatenate([codes for _, codes in self.blocks]),
        }

    @classmethod
    def from_tensors(
        cls, tensors: dict[str, npt.NDArray[Any]], n_features: int, counts: npt.NDArray[np.int64]
    ) -> Rows | None:
        """Rebuild; None if the file has none. There must be a row for each image that counts."""
        found = tensors.get("rows.values")
        if found is None:
            return None
        kind = np.float32 if found.dtype == np.float32 else np.float64
        values = check_array(found, "rows.values", kind, (None, n_features))
        codes = check_array(tensors.get("rows.codes"), "rows.codes", np.int32, (len(values),))
        if (codes < 0).any() or (codes >= len(counts)).any():
            raise ModelFileError("the model file is inconsistent: an example has no class")
        if not np.array_equal(np.bincount(codes, minlength=len(counts)), counts):
            raise ModelFileError("the model file is inconsistent: its examples do not match counts")
        return cls(((values, codes),))
