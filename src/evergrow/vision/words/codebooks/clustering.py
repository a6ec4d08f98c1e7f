"""Mini-batch k-means: by scikit-learn for arrays, and the same steps in torch for tensors.

Tensors lie on a GPU. Batches are drawn on the processor from the same generator, so a seed leads to
centres of the same quality on both, but not to the same centres: sums are rounded differently, and
scikit-learn's draws for the initial centres are not repeated one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from sklearn.cluster import MiniBatchKMeans

from evergrow.foundation.device import Device, Tensor, import_torch, is_tensor, place_like

Rows = npt.NDArray[np.float32]

# Scores of one block: fits in the cache and is enough for a matrix product at full speed.
_BLOCK_SCORES = 1 << 20
# On a GPU a block must be large enough for all its cores: 256 MiB of scores.
_DEVICE_BLOCK_SCORES = 1 << 26
# As in scikit-learn: a centre with less than this share of the rows of the largest one is replaced
# by a random row, at most every ten steps per centre.
_REASSIGNMENT_RATIO = 0.01
_ROWS_PER_REASSIGNMENT = 10


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

    def find_centres(self, rows: Rows | Tensor, random: np.random.RandomState) -> Any:
        """Return the centres of more rows than there are centres; a tensor if the rows are one."""
        if is_tensor(rows):
            return _Learner(self, rows, random).learn()
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
        return found.cluster_centers_.astype(np.float32)


def nearest(rows: Rows | Tensor, centres: Rows | Tensor) -> Any:
    """Index of the nearest centre of each row by Euclidean distance; the first one of ties.

    A tensor if the rows are one; the centres may be an array in any case.
    """
    if is_tensor(rows):
        return _nearest_on_device(rows, place_like(cast("Rows", centres), rows))[0]
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


def _nearest_on_device(rows: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """Index of the nearest centre of each row, and the squared distance from it."""
    torch = import_torch()
    middle = centres.mean(0)
    shifted = (centres - middle).T
    half_norms = 0.5 * (shifted * shifted).sum(0)
    found = torch.empty(len(rows), dtype=torch.int32, device=rows.device)
    distances = torch.empty(len(rows), dtype=torch.float32, device=rows.device)
    step = max(1, _DEVICE_BLOCK_SCORES // len(centres))
    for first in range(0, len(rows), step):
        block = slice(first, first + step)
        centred = rows[block] - middle
        scores, places = torch.addmm(half_norms, centred, shifted, alpha=-1).min(1)
        found[block] = places.int()
        distances[block] = (2 * scores + (centred * centred).sum(1)).clamp(min=0)
    return found, distances


def distinct_rows(rows: Rows | Tensor) -> Any:
    """Return the distinct rows in lexicographic order."""
    return import_torch().unique(rows, dim=0) if is_tensor(rows) else np.unique(rows, axis=0)


class _Learner:
    """Mini-batch k-means over tensors (Sculley, 2010), with the rules of scikit-learn."""

    def __init__(self, wanted: Clustering, rows: Tensor, random: np.random.RandomState) -> None:
        self._wanted, self._random = wanted, random
        self._device = Device(str(rows.device))
        self._rows = rows
        self._batch_size = min(wanted.batch_size, len(rows))

    def learn(self) -> Tensor:
        """Take steps until the distances of the rows of a batch no longer decrease."""
        centres = self._initial_centres()
        counts = centres.new_zeros(len(centres))
        n_steps = self._wanted.max_epochs * len(self._rows) // self._batch_size
        # The weight of one batch in the moving average, which spans about one epoch.
        share = min(1.0, 2.0 * self._batch_size / (len(self._rows) + 1))
        average, best, n_idle, n_since = math.nan, math.inf, 0, 0
        for step in range(n_steps):
            batch = self._draw(self._batch_size)
            inertia, any_empty = self._step(batch, centres, counts)
            n_since += self._batch_size
            if any_empty or n_since >= _ROWS_PER_REASSIGNMENT * len(centres):
                n_since = 0
                self._reassign(batch, centres, counts)
            # The first step is that of the initial centres, which are far from good.
            if step == 0:
                continue
            average = inertia if step == 1 else average * (1 - share) + inertia * share
            n_idle = 0 if average < best else n_idle + 1
            best = min(best, average)
            if n_idle >= self._wanted.max_no_improvement:
                break
        return centres

    def _draw(self, n: int) -> Tensor:
        return self._rows[self._device.tensor(self._random.randint(0, len(self._rows), n))]

    def _initial_centres(self) -> Tensor:
        """Return the best of the initial centres on one more sample."""
        size = self._wanted.init_size or 3 * self._batch_size
        size = max(min(size, len(self._rows)), self._wanted.n_centres)
        compared = self._draw(size) if self._wanted.n_init > 1 else None
        found: list[tuple[float, Tensor]] = []
        for _ in range(self._wanted.n_init):
            sample = self._draw(size)
            if self._wanted.start == "random":
                chosen = self._random.permutation(size)[: self._wanted.n_centres]
                centres = sample[self._device.tensor(chosen)]
            else:
                centres = self._spread_out(sample)
            inertia = (
                0.0 if compared is None else float(_nearest_on_device(compared, centres)[1].sum())
            )
            found.append((inertia, centres))
        return min(found, key=lambda one: one[0])[1].clone()

    def _spread_out(self, sample: Tensor) -> Tensor:
        """Choose rows by k-means++ (Arthur and Vassilvitskii, 2007), the best of some at a time."""
        torch, n_centres = import_torch(), self._wanted.n_centres
        n_trials = 2 + int(math.log(n_centres))
        centred = sample - sample.mean(0)
        norms = (centred * centred).sum(1)

        def distances(places: Tensor) -> Tensor:
            product = centred[places] @ centred.T
            return (norms[places, None] - 2 * product + norms).clamp_(min=0)

        # All draws at once, and no step waits for the device.
        draws = self._device.tensor(self._random.uniform(size=(n_centres, n_trials)))
        chosen = torch.empty(n_centres, dtype=torch.int64, device=sample.device)
        chosen[:1] = (draws[0, :1] * len(sample)).long()
        closest = distances(chosen[:1])[0]
        for number in range(1, n_centres):
            total = closest.double().cumsum(0)
            places = torch.searchsorted(total, draws[number] * total[-1])
            places.clamp_(max=len(sample) - 1)
            nearer = torch.minimum(distances(places), closest)
            best = nearer.sum(1, dtype=torch.float64).argmin(keepdim=True)
            chosen[number : number + 1] = places[best]
            closest = nearer[best][0]
        return sample[chosen]

    def _step(self, batch: Tensor, centres: Tensor, counts: Tensor) -> tuple[float, bool]:
        """Move the centres to the means of all rows that they ever were nearest to.

        Return the mean squared distance of the batch before, and whether a centre has no rows.
        """
        torch = import_torch()
        labels, distances = _nearest_on_device(batch, centres)
        # A matrix product, because adding at places has no fixed order on GPUs.
        members = batch.new_zeros(len(centres), len(batch))
        members.scatter_(0, labels.long()[None], 1.0)
        added = members.sum(1)
        before = counts.clone()
        counts += added
        divisors = counts.clamp(min=1)[:, None]
        moved = (centres * before[:, None] + members @ batch) / divisors
        torch.where(added[:, None] > 0, moved, centres, out=centres)
        inertia, n_empty = torch.stack([distances.mean(), (counts == 0).sum()]).tolist()
        return inertia, n_empty > 0

    def _reassign(self, batch: Tensor, centres: Tensor, counts: Tensor) -> None:
        """Replace centres with few rows by rows of the batch, at most half of it."""
        few = counts < _REASSIGNMENT_RATIO * counts.max()
        places = few.nonzero()[:, 0]
        most = len(batch) // 2
        if len(places) > most:
            places = places[counts[places].argsort(stable=True)[:most]]
        if not len(places):
            return
        chosen = self._random.choice(len(batch), replace=False, size=len(places))
        centres[places] = batch[self._device.tensor(chosen)]
        kept = counts.clone()
        kept[places] = math.inf
        counts[places] = kept.min()
