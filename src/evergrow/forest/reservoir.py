"""Which samples a forest with bounded memory lets go."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.forest.history import History

__all__ = ["choose_evicted"]

Rows = npt.NDArray[np.int32]


def choose_evicted(
    samples: _core.Samples,
    new: Rows,
    keep_per_class: int | None,
    seen: npt.NDArray[np.int64],
    history: History,
) -> Rows:
    """Rows to remove so that each class keeps a uniform choice of all its samples.

    Parameters
    ----------
    samples : Samples
        Stored and new ones.
    new : ndarray
        Rows of the new ones, in the order they came.
    keep_per_class : int or None
        How many of each class may stay; None for all.
    seen : ndarray of shape (n_classes,)
        Samples of each class shown before the new ones.
    history : History
        Seed and number of the update.

    Returns
    -------
    rows : ndarray
        Stored and new rows that go.
    """
    if keep_per_class is None:
        return np.zeros(0, dtype=np.int32)
    rng = np.random.Generator(np.random.PCG64([history.seed, history.n_updates]))
    classes, ids = samples.classes, samples.ids
    is_new = np.zeros(len(classes), dtype=bool)
    is_new[new] = True
    evicted: list[int] = []
    for c in np.unique(classes[classes >= 0]).tolist():
        stored = np.flatnonzero((classes == c) & ~is_new)
        # By id: a row's number may be another one after saving and loading.
        kept = stored[np.argsort(ids[stored])].tolist()
        n_seen = int(seen[c])
        while len(kept) > keep_per_class:
            evicted.append(kept.pop(int(rng.integers(len(kept)))))
        for row in new[classes[new] == c].tolist():
            n_seen += 1
            if len(kept) < keep_per_class:
                kept.append(row)
                continue
            # Algorithm R: the n-th sample takes a place with probability keep / n.
            place = int(rng.integers(n_seen))
            evicted.append(row if place >= keep_per_class else kept[place])
            if place < keep_per_class:
                kept[place] = row
    return np.array(sorted(evicted), dtype=np.int32)
