"""Which samples a forest with bounded memory lets go."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.foundation.priorities import priorities


def choose_evicted(
    samples: _core.Samples,
    keep_per_class: int | None,
    seed: int,
    expendable: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]:
    """Rows to remove so that each class keeps a uniform choice of all its samples.

    Parameters
    ----------
    samples : Samples
        Stored and new ones.
    keep_per_class : int or None
        How many of each class may stay; None for all.
    seed : int
        Seed of the forest.
    expendable : ndarray
        Ids of samples that go before any other of their class.

    Returns
    -------
    rows : ndarray
        Stored and new rows that go.
    """
    if keep_per_class is None:
        return np.zeros(0, dtype=np.int32)
    rows = np.flatnonzero(samples.classes >= 0)
    classes, ids = samples.classes[rows], samples.ids[rows]
    # Two samples may draw the same number; no two have the same id.
    order = np.lexsort((ids, priorities(f"{seed} kept", ids), np.isin(ids, expendable), classes))
    _, firsts, counts = np.unique(classes[order], return_index=True, return_counts=True)
    rank = np.arange(len(rows)) - np.repeat(firsts, counts)
    return np.sort(rows[order[rank >= keep_per_class]]).astype(np.int32)
