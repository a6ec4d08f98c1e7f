"""Metric learning on a GPU: class means, Fisher's discriminants and rows in their coordinates.

Sums and discriminants are in double precision, as on the processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.means.distances import shrunk_covariance
from evergrow.estimators.means.metric_learning import MetricStart, singular
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.device import Device, Tensor, import_torch, to_host
from evergrow.foundation.errors import InvalidInputError
from evergrow.storage.device_rows import device_blocks


def start_on(
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
    moments = _moments(device, used)
    centre, basis = _discriminants(device, moments, shrinkage)
    means = ((device.tensor(moments.means) - centre) @ basis.T).float()
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rows = torch.empty(new.rows.shape, dtype=torch.float32, device=device.name)
    for part, block in device_blocks(new.rows, device, torch.float64):
        rows[device.tensor(place[part])] = ((block - centre) @ basis.T).float()
    return MetricStart(basis, means, rows)


def _moments(device: Device, new: Batch) -> Moments:
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


def _discriminants(device: Device, moments: Moments, shrinkage: float) -> tuple[Tensor, Tensor]:
    """Return the centre and Fisher's discriminants, as on the processor up to their signs."""
    torch = import_torch()
    centre = moments.sums.sum(axis=0) / moments.weight
    centred = np.sqrt(moments.class_weights[:, None]) * (moments.means - centre)
    among = device.tensor(centred)
    factor, failed = torch.linalg.cholesky_ex(device.tensor(shrunk_covariance(moments, shrinkage)))
    if int(failed):
        raise singular(shrinkage)
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
