"""Metric learning for class means: NCMML [Mensink2013].

The projection W maximises the mean log softmax of ``-|W(x - mu_c)|^2 / 2``; the class means are
fixed in input space. Learning uses coordinates in which the classes have variance one in every
direction, so that the unit of the features has no effect.

The steps are the same for arrays and for tensors on a GPU. Only the start, which adds up all
examples in double precision, is another one there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, eigh
from scipy.special import logsumexp

from evergrow.estimators.means.covariance import shrunk_covariance
from evergrow.estimators.sums.accumulation import add_examples
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.device import (
    Device,
    Tensor,
    array_module,
    as_double,
    import_torch,
    is_tensor,
    place_like,
    to_host,
)
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.rows import float_blocks
from evergrow.storage.device_rows import device_blocks
from evergrow.storage.models.codec import Array, Fields
from evergrow.storage.shards import choose_rows

if TYPE_CHECKING:
    from evergrow.estimators.means.ncm_metric import NCMMetric

Floats = npt.NDArray[Any]
Codes = npt.NDArray[np.int32]

# Scales to try at the start: whitened classes are mostly so far apart that nothing is uncertain.
_SCALES = 2.0 ** np.arange(-4.0, 2.0, 0.5)
# The constants of Adam, as in Kingma and Ba (2015).
_MEMORY, _SQUARES_MEMORY, _TINY = 0.9, 0.999, 1e-12
# Features and directions are at most this large, so that projections stay finite.
LARGEST = 1e140


@dataclass(frozen=True, eq=False)
class FittedMetric:
    """A learnt projection, and the likelihood after each epoch."""

    components: npt.NDArray[np.float64]
    log_likelihoods: npt.NDArray[np.float64]

    _stored: ClassVar[Fields] = {
        "components": Array(np.float64, (None, None), -LARGEST, LARGEST, filled=True),
        "log_likelihoods": Array(np.float64, (None,), filled=True),
    }


@dataclass(frozen=True, eq=False)
class _Data:
    """Rows with their class columns and weights, arrays or tensors; the mean weight is one."""

    rows: Floats
    codes: Codes
    weights: Floats

    def at(self, index: npt.NDArray[Any] | Tensor | slice) -> _Data:
        return _Data(self.rows[index], self.codes[index], self.weights[index])


def log_likelihood(
    projection: Floats, means: Floats, rows: Floats, codes: Codes, weights: Floats
) -> float:
    """Return the weighted mean log softmax of ``-|W(x - mu)|^2 / 2`` at the true classes."""
    scores = _scores(rows @ projection.T, means @ projection.T)
    if is_tensor(scores):
        entropies = array_module(scores).nn.functional.cross_entropy
        terms = -entropies(scores, codes, reduction="none").double()
        return float(as_double(weights) @ terms / as_double(weights).sum())
    true = scores[np.arange(len(codes)), codes]
    # Summed in double precision, because the mean is over many examples.
    terms = (true - logsumexp(scores, axis=1)).astype(np.float64)
    return float(weights @ terms / weights.sum())


def gradient(
    projection: Floats, means: Floats, rows: Floats, codes: Codes, weights: Floats
) -> Floats:
    """Return the gradient of the weighted sum of log softmax with respect to W.

    With residuals ``R = softmax - Y``, whose rows sum to zero, the term ``x_i x_i'`` cancels in the
    sum over examples and classes of ``R_ic W (x_i - mu_c)(x_i - mu_c)'``. The rest is a few matrix
    products.
    """
    projected, projected_means = rows @ projection.T, means @ projection.T
    residuals = _residuals(_scores(projected, projected_means), codes)
    residuals *= weights[:, None]
    by_class = residuals.sum(axis=0)[:, None]
    step: Floats = projected_means.T @ (by_class * means - residuals.T @ rows)
    step -= projected.T @ (residuals @ means)
    return step


def _scores(projected: Floats, projected_means: Floats) -> Floats:
    lengths = array_module(projected).einsum("ij,ij->i", projected_means, projected_means)
    return cast("Floats", projected @ projected_means.T - lengths / 2)


def _residuals(scores: Floats, codes: Codes) -> Floats:
    """Return the softmax of the scores minus 1 at the true classes; the scores are overwritten."""
    if is_tensor(scores):
        softmax = array_module(scores).softmax(scores, 1)
        return cast(
            "Floats", softmax.scatter_add_(1, codes[:, None], -softmax.new_ones(len(codes), 1))
        )
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    scores[np.arange(len(codes)), codes] -= 1
    return scores


@dataclass(frozen=True, eq=False)
class MetricStart:
    """Where learning starts: everything in the coordinates of Fisher's discriminants."""

    # (n_features, n_features) in double precision: from centred features to discriminants.
    basis: Floats
    means: Floats
    # All examples, those to learn from first, in single precision.
    rows: Floats


def learn_metric(
    X: npt.NDArray[Any],
    codes: Codes,
    weights: npt.NDArray[np.float64],
    metric: NCMMetric,
    n_components: int,
    random: np.random.RandomState,
    device: Device | None = None,
) -> FittedMetric:
    """Learn a projection by the parameters of a metric, on a device if there is one.

    Class means are those of the training examples.
    """
    held_out = _held_out(codes, float(metric.validation_fraction), random)
    if not held_out.any():
        # Too few to hold any out: the training examples also decide when to stop.
        learnt_from = np.ones(len(codes), dtype=bool)
        held_out = learnt_from
    else:
        learnt_from = ~held_out
    # Training examples first, so that both parts are views of one copy.
    order = np.argsort(~learnt_from, kind="stable")
    own_weights = (weights / weights.mean()).astype(np.float32)
    new = Batch(X, codes, weights)
    if device is None:
        start = _start(new, learnt_from, order, float(metric.shrinkage))
        data = _Data(start.rows, codes[order], own_weights[order])
    else:
        start = _start_on(device, new, learnt_from, order, float(metric.shrinkage))
        columns = device.tensor(codes[order].astype(np.int64))
        data = _Data(start.rows, columns, device.tensor(own_weights[order]))
    n_learnt_from = int(learnt_from.sum())
    training = data.at(slice(n_learnt_from))
    validation = training if held_out is learnt_from else data.at(slice(n_learnt_from, None))
    begin = place_like(np.eye(n_components, X.shape[1], dtype=np.float32), start.rows)
    projection, likelihoods = _ascend(start.means, training, validation, begin, metric, random)
    return FittedMetric(to_host(as_double(projection) @ start.basis), np.array(likelihoods))


def _held_out(codes: Codes, share: float, random: np.random.RandomState) -> npt.NDArray[np.bool_]:
    """Draw validation examples: the same share of each class, and never all of a class."""
    shuffled = random.permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    # Every n-th example in the order of the classes.
    steps = np.floor(np.arange(1, len(codes) + 1) * share)
    held_out = np.zeros(len(codes), dtype=bool)
    held_out[by_class] = np.diff(steps, prepend=0.0) > 0
    left = np.bincount(codes[~held_out], minlength=int(codes.max()) + 1)
    held_out[left[codes] == 0] = False
    return held_out


def _start(
    new: Batch, learnt_from: npt.NDArray[np.bool_], order: npt.NDArray[np.intp], shrinkage: float
) -> MetricStart:
    X, codes, weights = new.rows, new.codes, new.weights
    moments = _moments(choose_rows(X, learnt_from), codes[learnt_from], weights[learnt_from])
    centre, basis = _discriminants(moments, shrinkage)
    means = ((moments.means - centre) @ basis.T).astype(np.float32)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rows = np.empty(X.shape, dtype=np.float32)
    for part, block in float_blocks(X):
        rows[place[part]] = (block - centre) @ basis.T
    return MetricStart(basis, means, rows)


def _moments(X: npt.NDArray[Any], codes: Codes, weights: npt.NDArray[np.float64]) -> Moments:
    none = Moments.none(X.shape[1], int(codes.max()) + 1, gram=True)
    return add_examples(none, Batch(X, codes, weights))[0]


def _discriminants(moments: Moments, shrinkage: float) -> tuple[Floats, Floats]:
    """Return the centre and Fisher's discriminants, sorted by how well they separate means.

    Along each of them the variance within classes is one.
    """
    centre = moments.sums.sum(axis=0) / moments.weight
    centred = np.sqrt(moments.class_weights[:, None]) * (moments.means - centre)
    within = shrunk_covariance(moments, shrinkage)
    try:
        _, vectors = eigh(centred.T @ centred / moments.weight, within)
    except LinAlgError as error:
        raise _singular(shrinkage) from error
    return centre, np.ascontiguousarray(vectors[:, ::-1].T)


def _singular(shrinkage: float) -> InvalidInputError:
    """Return the error for a covariance that has no inverse."""
    return InvalidInputError(
        f"the covariance within classes is singular: set shrinkage above {shrinkage:g}"
    )


def _start_on(
    device: Device,
    new: Batch,
    learnt_from: npt.NDArray[np.bool_],
    order: npt.NDArray[np.intp],
    shrinkage: float,
) -> MetricStart:
    """Return the start of learning from some of the examples; rows come in the given order."""
    torch = import_torch()
    # Those that are held out have no weight in the sums.
    used = Batch(new.rows, new.codes, np.where(learnt_from, new.weights, 0.0))
    moments = _moments_on(device, used)
    centre, basis = _discriminants_on(device, moments, shrinkage)
    means = ((device.tensor(moments.means) - centre) @ basis.T).float()
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rows = torch.empty(new.rows.shape, dtype=torch.float32, device=device.name)
    for part, block in device_blocks(new.rows, device, torch.float64):
        rows[device.tensor(place[part])] = ((block - centre) @ basis.T).float()
    return MetricStart(basis, means, rows)


def _moments_on(device: Device, new: Batch) -> Moments:
    """Return the sums over the examples of positive weight."""
    torch, n_features = import_torch(), new.rows.shape[1]
    n_classes = int(new.codes.max()) + 1
    options = {"dtype": torch.float64, "device": device.name}
    sums, squares = torch.zeros(n_classes, n_features, **options), torch.zeros(n_classes, **options)
    gram = torch.zeros(n_features, n_features, **options)
    codes, weights = device.tensor(new.codes.astype(np.int64)), device.tensor(new.weights)
    for rows, block in device_blocks(new.rows, device, torch.float64, n_classes):
        weighted = block * weights[rows, None]
        gram.addmm_(block.T, weighted)
        # A matrix product, because adding at places has no fixed order on GPUs.
        members = torch.nn.functional.one_hot(codes[rows], n_classes).double().T
        sums.addmm_(members, weighted)
        squares.addmv_(members, torch.einsum("ij,ij->i", block, weighted))
    class_squares = to_host(squares)
    present = new.weights > 0
    return Moments(
        tuple(to_host(sums)),
        np.bincount(new.codes, new.weights, n_classes).astype(np.float64),
        np.bincount(new.codes[present], minlength=n_classes),
        class_squares,
        to_host(gram),
        None,
        float(class_squares.sum()),
    )


def _discriminants_on(device: Device, moments: Moments, shrinkage: float) -> tuple[Tensor, Tensor]:
    """Return the centre and Fisher's discriminants, as on the processor up to their signs."""
    torch = import_torch()
    centre = moments.sums.sum(axis=0) / moments.weight
    centred = np.sqrt(moments.class_weights[:, None]) * (moments.means - centre)
    among = device.tensor(centred)
    factor, failed = torch.linalg.cholesky_ex(device.tensor(shrunk_covariance(moments, shrinkage)))
    if int(failed):
        raise _singular(shrinkage)
    # With W = L L', the vectors of B v = l W v are L'^-1 times those of L^-1 B L'^-1.
    white = torch.linalg.solve_triangular(factor, among.T, upper=False)
    _, vectors = _eigh(white @ white.T / moments.weight)
    vectors = torch.linalg.solve_triangular(factor.T, vectors, upper=True)
    return device.tensor(centre), vectors.flip(1).T.contiguous()


def _eigh(matrix: Tensor) -> Any:
    torch = import_torch()
    try:
        return torch.linalg.eigh(matrix)
    except torch.linalg.LinAlgError as error:
        raise InvalidInputError(
            f"the eigenvectors of the features were not found: {error}"
        ) from error


def _ascend(
    means: Floats,
    training: _Data,
    validation: _Data,
    projection: Floats,
    metric: NCMMetric,
    random: np.random.RandomState,
) -> tuple[Floats, list[float]]:
    """Run Adam; after an epoch without improvement, go back to the best and halve the step."""

    def held_out_likelihood(projection: Floats) -> float:
        return log_likelihood(
            projection, means, validation.rows, validation.codes, validation.weights
        )

    def scaled(length: float) -> Floats:
        return cast("Floats", float(np.float32(length)) * projection)

    scale = max(_SCALES, key=lambda length: held_out_likelihood(scaled(length)))
    best = scaled(scale)
    best_likelihood = held_out_likelihood(best)
    step = float(metric.learning_rate) * scale / np.sqrt(training.rows.shape[1])
    likelihoods: list[float] = []
    n_idle = 0
    adam = _Adam(best)
    with progress_bar("learning a metric", metric.max_iter, int(metric.verbose)) as progress:
        while len(likelihoods) < metric.max_iter and n_idle < metric.n_iter_no_change:
            _epoch(adam, means, training, step, metric.batch_size, random)
            likelihood = held_out_likelihood(adam.projection)
            likelihoods.append(likelihood)
            n_idle = 0 if likelihood > best_likelihood + metric.tol else n_idle + 1
            if likelihood > best_likelihood:
                best, best_likelihood = _copied(adam.projection), likelihood
            if n_idle:
                step /= 2
                adam = _Adam(best)
            if progress is not None:
                progress(len(likelihoods))
    return best, likelihoods


def _epoch(
    adam: _Adam,
    means: Floats,
    training: _Data,
    step: float,
    batch_size: int,
    random: np.random.RandomState,
) -> None:
    order = place_like(random.permutation(len(training.codes)), training.rows)
    for first in range(0, len(order), batch_size):
        batch = training.at(order[first : first + batch_size])
        ascent = gradient(adam.projection, means, batch.rows, batch.codes, batch.weights)
        adam.ascend(ascent / len(batch.codes), step)


class _Adam:
    """Adam (Kingma and Ba, 2015): steps of about equal length in every coordinate."""

    def __init__(self, start: Floats) -> None:
        self._module = array_module(start)
        self.projection = _copied(start)
        self._mean = self._module.zeros_like(start)
        self._squares = self._module.zeros_like(start)
        self._n_steps = 0

    def ascend(self, ascent: Floats, step: float) -> None:
        """Take one step along the gradient."""
        self._n_steps += 1
        self._mean += (1 - _MEMORY) * (ascent - self._mean)
        self._squares += (1 - _SQUARES_MEMORY) * (ascent**2 - self._squares)
        mean = self._mean / (1 - _MEMORY**self._n_steps)
        squares = self._squares / (1 - _SQUARES_MEMORY**self._n_steps)
        length = float(np.float32(step))
        self.projection += length * mean / (self._module.sqrt(squares) + _TINY)


def _copied(array: Any) -> Any:
    return array.clone() if is_tensor(array) else array.copy()
