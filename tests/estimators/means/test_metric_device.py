"""NCMMetric on a GPU, and the same code by torch on the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow import DeviceMemoryError, NCMClassifier, NCMMetric
from evergrow import device as compute_on
from evergrow.estimators.means import metric_learning
from evergrow.foundation.device import Device
from tests.conftest import Arrays
from tests.devices import every_device, import_torch, on
from tests.estimators.means.cases import blobs

torch = import_torch()
X, Y = blobs(300)
OPTIONS = {"max_iter": 5, "random_state": 0}


@every_device
def test_it_is_as_good_as_on_the_processor(device: str, digits: Arrays) -> None:
    data, _, y, _ = digits
    here = NCMMetric(random_state=0).fit(data, y)
    with compute_on(device):
        there = NCMMetric(random_state=0).fit(on(device, data), y)
    assert there.log_likelihoods_.max() > here.log_likelihoods_.max() - 0.01
    assert isinstance(there.components_, np.ndarray)


@every_device
def test_learning_starts_from_the_same_discriminants(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first(means: Any, training: Any, validation: Any, begin: Any, *_: Any) -> Any:
        return begin, [0.0]

    monkeypatch.setattr(metric_learning, "_ascend", first)
    weights = np.random.default_rng(0).uniform(0.5, 2, 300) * (np.arange(300) % 7 > 0)
    here = NCMMetric(random_state=0).fit(X, Y, weights).components_
    with compute_on(device):
        there = NCMMetric(random_state=0).fit(on(device, X), Y, weights).components_
    # The means of four classes vary in three directions; only their signs may differ.
    for one, other in zip(here[:3], there[:3], strict=True):
        sign = np.sign(one @ other)
        np.testing.assert_allclose(sign * other, one, rtol=1e-9, atol=1e-9 * np.abs(one).max())


def test_gradient_and_likelihood_are_those_of_arrays() -> None:
    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape) for shape in ((2, 4), (3, 4), (20, 4))]
    codes, weights = random.integers(0, 3, 20), random.uniform(0.5, 2, 20)
    given = [*arrays, codes, weights]
    tensors = [torch.as_tensor(one) for one in given]
    for function in (metric_learning.gradient, metric_learning.log_likelihood):
        np.testing.assert_allclose(function(*tensors), function(*given), rtol=1e-12)


@every_device
def test_projections_lie_where_the_rows_do(device: str) -> None:
    with compute_on(device):
        metric = NCMMetric(2, **OPTIONS).fit(X, Y)
        there = metric.transform(on(device, X))
        here = metric.transform(X.astype(np.float32))
    assert there.device == on(device, X).tensor.device
    np.testing.assert_allclose(there.cpu(), X @ metric.components_.T, rtol=1e-9)
    assert isinstance(here, np.ndarray)
    np.testing.assert_allclose(here, X.astype(np.float32) @ metric.components_.T, rtol=1e-9)


def test_rows_on_a_device_can_be_projected_on_the_processor() -> None:
    with compute_on("cpu"):
        metric = NCMMetric(2, **OPTIONS).fit(on("torch-cpu", X), Y)
        assert isinstance(metric.transform(on("torch-cpu", X)), torch.Tensor)


@pytest.mark.gpu
def test_without_a_device_it_computes_where_the_samples_lie() -> None:
    rows = torch.as_tensor(X, device="cuda")
    metric = NCMMetric(2, **OPTIONS).fit(rows, torch.as_tensor(Y, device="cuda"))
    assert metric.transform(rows).is_cuda


@every_device
def test_a_seed_leads_to_the_same_metric(device: str) -> None:
    with compute_on(device):
        first, same = (NCMMetric(**OPTIONS).fit(X, Y).components_ for _ in range(2))
    np.testing.assert_array_equal(first, same)


@every_device
def test_the_nearest_mean_classifier_learns_its_metric_there(device: str, digits: Arrays) -> None:
    data, test, y, y_test = digits
    model = NCMClassifier(metric=NCMMetric(max_iter=3, random_state=0))
    with compute_on(device):
        assert model.fit(on(device, data), y).score(test, y_test) > 0.95


@pytest.mark.parametrize(
    ("raised", "expected"),
    [(torch.OutOfMemoryError("full"), DeviceMemoryError), (KeyboardInterrupt(), KeyboardInterrupt)],
)
def test_a_full_device_or_an_interrupt_leaves_the_metric_as_it_was(
    raised: BaseException, expected: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = NCMMetric(2, **OPTIONS).fit(X, Y)
    before = dict(vars(metric))

    def fail(*_: Any) -> None:
        raise raised

    monkeypatch.setattr(metric_learning, "_epoch", fail)
    with compute_on("torch-cpu"), pytest.raises(expected):
        metric.fit(2 * X, Y)
    assert vars(metric) == before


def test_too_little_shrinkage_is_named_as_on_the_processor() -> None:
    message = "set shrinkage above 1e-300"
    with compute_on("torch-cpu"), pytest.raises(ValueError, match=message):
        NCMMetric(shrinkage=1e-300).fit(X[:4], np.zeros(4))


def test_numbers_that_are_too_large_are_refused() -> None:
    with compute_on("torch-cpu"), pytest.raises(ValueError, match="too large to add up"):
        NCMMetric().fit(on("torch-cpu", X * 1e150), Y)


def test_sums_are_those_of_the_processor() -> None:
    batch = metric_learning.Batch(X, Y.astype(np.int32), np.linspace(0.5, 2.0, 300))
    there = metric_learning._moments_on(Device("cpu"), batch)
    here = metric_learning._moments(batch.rows, batch.codes, batch.weights)
    for name in ("sums", "class_weights", "class_examples", "class_squares"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-12)
    np.testing.assert_allclose(np.triu(there.gram), np.triu(here.gram), rtol=1e-12)
    assert there.peak == pytest.approx(here.peak)
