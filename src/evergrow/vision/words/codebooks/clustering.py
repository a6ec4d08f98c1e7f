"""Mini-batch k-means, and the nearest of its centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import numpy.typing as npt
from sklearn.cluster import MiniBatchKMeans

Rows = npt.NDArray[np.float32]

# Scores of one block: fits in the cache and is enough for a matrix product at full speed.
_BLOCK_SCORES = 1 << 20


@dataclass(frozen=True)
class Clustering:
    """The parameters of one clustering, as in scikit-learn's ``MiniBatchKMeans``."""

    n_centres: int
    start: Literal["k-means++", "random"] = "k-means++"
    batch_size: int = 4096
    max_epochs: int = 100
    max_no_improvement: int = 10
    n_init: int = 1
    # Rows from which the initial centres are chosen; None for three batches.
    init_size: int | None = None

    def find_centres(self, rows: Rows, random: np.random.RandomState) -> Rows:
        """Return the centres of more rows than there are centres."""
        found = MiniBatchKMeans(
            self.n_centres,
            init=self.start,
            batch_size=self.batch_size,
            max_iter=self.max_epochs,
            max_no_improvement=self.max_no_improvement,
            n_init=self.n_init,
            init_size=self.init_size,
            random_state=random,
        ).fit(rows)
        return cast("Rows", found.cluster_centers_.astype(np.float32))


def nearest(rows: Rows, centres: Rows) -> npt.NDArray[np.int32]:
    """Index of the nearest centre of each row by Euclidean distance; the first one of ties."""
    # Subtracting the mean centre avoids loss of precision by a common offset.
    middle = centres.mean(axis=0)
    shifted = np.ascontiguousarray((centres - middle).T)
    half_norms = 0.5 * np.einsum("ij,ij->j", shifted, shifted)
    found = np.empty(len(rows), dtype=np.int32)
    step = max(1, _BLOCK_SCORES // len(centres))
    for first in range(0, len(rows), step):
        block = slice(first, first + step)
        scores = (rows[block] - middle) @ shifted
        np.subtract(half_norms, scores, out=scores)
        found[block] = scores.argmin(axis=1)
    return found


def distinct_rows(rows: Rows) -> Rows:
    """Return the distinct rows in lexicographic order."""
    return np.unique(rows, axis=0)
