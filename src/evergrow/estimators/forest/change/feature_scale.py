"""Measure the transform of the features of a new forest, and choose which one to use.

A forest compares samples with class means: with means of whole classes near the root, with means
of few neighbours near the leaves. So a transform is good for it if the nearest class mean, or the
nearest neighbour, is of the right class. ``standardize="auto"`` takes the features as they are,
scaled, or whitened by the covariance within classes, whichever is better at this for samples that
are left out.

Where classes have few samples, their means differ in length by chance, and the nearest mean is
often just a short one. So it is also tried to bring all samples to nearly the same length. With
one or two samples per class nothing can be left out; features are then scaled, and samples of many
features are brought to the same length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.request import ForestRequest, median_class_size
from evergrow.estimators.forest.value.fitted import ForestBatch
from evergrow.estimators.forest.value.standardization import (
    ClassScatter,
    Standardization,
    chosen_blocks,
    class_means,
    varying_features,
)
from evergrow.foundation.rows import priorities

# Shrinkages to try, and the degrees of freedom per feature that the covariance needs for each.
# Strong shrinkage did not make any forest worse, whatever it was measured on.
_SHRINKAGES = ((0.8, 0.0), (0.6, 2.0), (0.3, 6.0), (0.1, 12.0))
# Samples that are left out, one at a time.
_MOST_LEFT_OUT = 1200
# With fewer samples the accuracies say too little; features are then scaled.
_FEWEST_LEFT_OUT = 50
# Equal lengths are tried if classes have at most so many samples, and used without a trial up to so
# many. One of few features has much to say by its length.
_SMALL_CLASS, _TINY_CLASS, _FEWEST_FEATURES = 20, 5, 32
# Candidates are as good as the best within one standard error, or within this share of it if
# classes are small: all are right about the same samples, so that they differ by less.
_ERRORS_OF_SMALL = 0.5
# The covariance is measured on at least so many samples, if there are, and on so many per feature
# and per class.
_MEASURED, _MEASURED_PER_FEATURE, _MEASURED_PER_CLASS = 20000, 40, 8
# With more features "auto" does not whiten: the matrix would be slower than the trees.
MOST_FEATURES = 4096


def measure_features(batch: ForestBatch, n_classes: int, request: ForestRequest) -> Standardization:
    """The transform of the features that the request asks for, measured on a batch."""
    if request.standardize == "none":
        return Standardization.common(batch.X)
    scaled = Standardization.of_each(batch.X)
    if request.standardize == "scale":
        return scaled
    class_size = _class_size(batch, request)
    if not _can_choose(batch, request):
        is_tiny = class_size <= _TINY_CLASS
        return scaled.with_equal_lengths(varying_features(batch.X)) if is_tiny else scaled
    rows = _measured_rows(batch, n_classes)
    scatter = ClassScatter.of(batch.X, batch.codes, rows, n_classes, scaled.scale)
    left_out = LeftOut.of(batch, rows, scatter)
    whitened = [
        Candidate(Standardization.whitened(scaled, scatter, shrinkage), shrinkage)
        for shrinkage, least in _SHRINKAGES
        if scatter.n_free >= least * batch.X.shape[1]
    ]
    if request.standardize == "whiten":
        return first_good(whitened, left_out).standardization
    plain = [Candidate(scaled), Candidate(Standardization.common(batch.X))]
    candidates = [max(plain, key=left_out.accuracy), *whitened]
    if class_size <= _SMALL_CLASS:
        equal = left_out.of_equal_lengths([*plain, *whitened], batch, rows)
        candidates += [max(equal[:2], key=left_out.accuracy), *equal[2:]]
    errors = 1.0 if class_size > _SMALL_CLASS else _ERRORS_OF_SMALL
    return first_good(candidates, left_out, errors).standardization


def _class_size(batch: ForestBatch, request: ForestRequest) -> float:
    """Samples of a class; infinite where lengths are to stay as they are."""
    if request.standardize != "auto" or batch.X.shape[1] < _FEWEST_FEATURES:
        return math.inf
    return median_class_size(np.bincount(batch.codes), None)


def _can_choose(batch: ForestBatch, request: ForestRequest) -> bool:
    if request.standardize == "whiten":
        return True
    n_repeated = len(batch) - len(np.unique(batch.codes))
    return batch.X.shape[1] <= MOST_FEATURES and n_repeated >= _FEWEST_LEFT_OUT


def most_measured(n_features: int, n_classes: int) -> int:
    """Samples that the covariance is measured on, if there are as many.

    >>> most_measured(1280, 1000)
    51200
    """
    return max(_MEASURED, _MEASURED_PER_FEATURE * n_features, _MEASURED_PER_CLASS * n_classes)


def _measured_rows(batch: ForestBatch, n_classes: int) -> npt.NDArray[np.int64]:
    return _draw(len(batch), most_measured(batch.X.shape[1], n_classes))


def _draw(n: int, most: int) -> npt.NDArray[np.int64]:
    """At most so many of the numbers 0 to n - 1, drawn at random, but always the same.

    Every k-th would not do: the classes of samples may come in turns.

    >>> len(_draw(10, 4)), _draw(3, 4).tolist()
    (4, [0, 1, 2])
    """
    if n <= most:
        return np.arange(n, dtype=np.int64)
    drawn = np.argpartition(priorities("features", np.arange(n)), most)[:most]
    return np.sort(drawn).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A transform that may be chosen.

    Attributes
    ----------
    standardization : Standardization
        The transform.
    shrinkage : float or None
        That of a whitening.
    means : ndarray of shape (n_classes, n_features) or None
        Class means of transformed samples; None for transformed class means, which are the same
        unless lengths are equal.
    """

    standardization: Standardization
    shrinkage: float | None = None
    means: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Samples to classify by the others: features, classes, and all class means.

    Only samples of classes with more than one are classified.
    """

    X: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    scatter: ClassScatter
    _accuracies: dict[Candidate, float] = field(default_factory=dict)

    @classmethod
    def of(cls, batch: ForestBatch, rows: npt.NDArray[np.int64], scatter: ClassScatter) -> LeftOut:
        """Some of the rows that the scatter was measured on."""
        chosen = rows[_draw(len(rows), _MOST_LEFT_OUT)]
        blocks = [block for block, _ in chosen_blocks(batch.X, batch.codes, chosen)]
        return cls(np.concatenate(blocks), batch.codes[chosen], scatter)

    def of_equal_lengths(
        self, candidates: list[Candidate], batch: ForestBatch, rows: npt.NDArray[np.int64]
    ) -> list[Candidate]:
        """The same candidates for samples of nearly equal length."""
        varies, found = varying_features(batch.X), []
        for candidate in candidates:
            equal = candidate.standardization.with_equal_lengths(varies)
            blocks = (
                (equal.apply(block), own)
                for block, own in chosen_blocks(batch.X, batch.codes, rows)
            )
            means = class_means(blocks, self.scatter.counts, batch.X.shape[1])
            found.append(replace(candidate, standardization=equal, means=means))
        return found

    @property
    def is_judged(self) -> npt.NDArray[np.bool_]:
        """Which samples are classified."""
        return np.asarray(self.scatter.counts[self.codes] > 1)

    def mean_accuracy(self, candidate: Candidate, rows: npt.NDArray[np.float32]) -> float:
        """Share of samples that are nearest to the mean of their class, which is without them.

        The covariance of a whitening is without them too: it is updated by one product of the
        deviation of the sample from its class mean. Only the diagonal that it is shrunk towards
        stays, and the factors that make lengths equal.
        """
        scatter, judged = self.scatter, self.is_judged
        codes, known = self.codes[judged], np.flatnonzero(scatter.counts > 0)
        x, linear = rows[judged], candidate.standardization.with_own_lengths()
        plain_means = linear.apply(scatter.means[known])
        means = plain_means if candidate.means is None else candidate.means[known]
        means = means.astype(np.float32)
        own = np.searchsorted(known, codes)
        distances = _square_distances(x, means).astype(np.float64)
        factor = scatter.counts[codes] / (scatter.counts[codes] - 1.0)
        if candidate.shrinkage is not None:
            weight = (1.0 - candidate.shrinkage) * factor / max(scatter.n_free, 1)
            plain = x if candidate.means is None else linear.apply(self.X[judged])
            residual = plain - plain_means[own]
            # Sherman and Morrison: the inverse after a product was subtracted.
            length = np.einsum("ij,ij->i", residual, residual)
            along = np.einsum("ij,ij->i", x, residual)[:, None] - residual @ means.T
            gain = weight / np.maximum(1.0 - weight * length, 1e-6)
            distances += gain[:, None] * along**2
        # Without the sample, its class mean lies further away in the same direction.
        distances[np.arange(len(own)), own] *= factor**2
        return float(np.mean(np.argmin(distances, axis=1) == own))

    def neighbour_accuracy(self, rows: npt.NDArray[np.float32]) -> float:
        """Share of samples whose nearest neighbour among the others is of their class."""
        distances = _square_distances(rows, rows)
        np.fill_diagonal(distances, np.inf)
        right = self.codes[np.argmin(distances, axis=1)] == self.codes
        return float(np.mean(right[self.is_judged]))

    def accuracy(self, candidate: Candidate) -> float:
        """The better of both; neighbours count only where features are not whitened.

        The covariance is not without the samples of a pair, which would make them neighbours.
        """
        if candidate not in self._accuracies:
            rows = candidate.standardization.apply(self.X)
            accuracy = self.mean_accuracy(candidate, rows)
            if candidate.shrinkage is None:
                accuracy = max(accuracy, self.neighbour_accuracy(rows))
            self._accuracies[candidate] = accuracy
        return self._accuracies[candidate]


def first_good(candidates: list[Candidate], left_out: LeftOut, errors: float = 1.0) -> Candidate:
    """The first candidate that is within some standard errors of the best.

    Candidates are in the order of how much they change the features, so a whitening that only
    might help is not used.
    """
    if not left_out.is_judged.any():
        return candidates[0]
    accuracies = [left_out.accuracy(candidate) for candidate in candidates]
    best = max(accuracies)
    error = (best * (1.0 - best) / max(1, int(left_out.is_judged.sum()))) ** 0.5
    return next(
        candidate
        for candidate, accuracy in zip(candidates, accuracies, strict=True)
        if accuracy >= best - errors * error
    )


def _square_distances(
    x: npt.NDArray[np.floating], y: npt.NDArray[np.floating]
) -> npt.NDArray[np.floating]:
    squares = np.einsum("ij,ij->i", x, x)[:, None] + np.einsum("ij,ij->i", y, y)
    return np.asarray(squares - 2.0 * (x @ y.T))
