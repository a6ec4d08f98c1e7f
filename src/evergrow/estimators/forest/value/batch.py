"""New samples of one call, and the early samples that a young forest is grown again from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evergrow.storage.shards import join_rows

Codes: TypeAlias = npt.NDArray[np.int32]
Ids: TypeAlias = npt.NDArray[np.int64]

# The scale of the features is measured again until there are this many samples.
_SETTLED = 50


@dataclass(frozen=True, eq=False)
class ForestBatch:
    """Samples of one call: features, class columns and ids."""

    X: npt.NDArray[Any]
    codes: Codes
    ids: Ids

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class EarlySamples(ForestBatch):
    """The first samples as they came, until there are enough to fix the feature scale.

    While a forest has early samples, each change of them grows it again from all of them. Once
    there are 50 samples the scale is fixed, and the early samples are empty from then on: all
    methods then return an empty value.
    """

    @classmethod
    def of(cls, batch: ForestBatch) -> EarlySamples:
        """Copy of a batch, or empty if the batch is large enough to fix the scale."""
        if len(batch) >= _SETTLED:
            return NO_EARLY_SAMPLES
        # The caller gets the ids as sample_ids_ and may change them, so they are copied too.
        return cls(np.array(batch.X[:], dtype=np.float64), batch.codes, batch.ids.copy())

    def with_batch(self, batch: ForestBatch) -> ForestBatch:
        """The early samples and those of a batch."""
        return ForestBatch(
            join_rows(self.X, batch.X),
            np.concatenate([self.codes, batch.codes]),
            np.concatenate([self.ids, batch.ids]),
        )

    def without(self, ids: Ids) -> EarlySamples:
        """All but the samples with these ids."""
        left = ~np.isin(self.ids, ids)
        return EarlySamples(self.X[left], self.codes[left], self.ids[left])

    def with_classes(self, ids: Ids, codes: Codes) -> EarlySamples:
        """The same samples, those with these ids in other classes."""
        if not len(self):
            return self
        order = np.argsort(self.ids)
        changed = self.codes.copy()
        changed[order[np.searchsorted(self.ids[order], ids)]] = codes
        return replace(self, codes=changed)

    def with_columns(self, columns: list[int]) -> EarlySamples:
        """The same samples with classes renumbered: class ``c`` becomes ``columns[c]``."""
        return replace(self, codes=np.array(columns, dtype=np.int32)[self.codes])

    def to_tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays of a model file; none if there are no early samples."""
        if not len(self):
            return {}
        return {"early.X": self.X, "early.codes": self.codes, "early.ids": self.ids}


NO_EARLY_SAMPLES = EarlySamples(
    np.zeros((0, 0)), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
)
