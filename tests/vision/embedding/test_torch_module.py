"""PyTorch modules as networks, on the processor and on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from evergrow import DeviceMemoryError, Embedder, ImageClassifier
from evergrow import device as compute_on
from evergrow.vision import OnnxModel, Preprocessing
from tests.devices import DEVICES, import_torch
from tests.vision.embedding.models import onnx_model
from tests.vision.images.drawn import encoded, noise

torch = import_torch()

IMAGES = [noise(seed=i) for i in range(5)]
FILES = [encoded(image) for image in IMAGES]
PLAIN = Preprocessing(size=8, mean=127, scale=128)


class Means(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A module with a layer and one parameter; it records how each run finds it."""

    def __init__(self, forward: Any = None) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
        self.layer = torch.nn.Identity()
        self.change = forward
        self.runs: list[Any] = []

    def forward(self, batch: Any) -> Any:
        mode = (self.training, self.layer.training, torch.is_grad_enabled())
        self.runs.append((tuple(batch.shape), batch.dtype, mode, batch.device.type))
        means = batch.mean((2, 3)) * self.weight
        return means if self.change is None else self.change(means, batch)


@pytest.fixture
def make() -> Callable[..., Any]:
    return Means


def expected(preprocessing: Preprocessing = PLAIN) -> Any:
    means = [preprocessing(image).mean(axis=(1, 2)) for image in IMAGES]
    return np.stack(means) * np.array([1, 2, 3], np.float32)


def test_vectors_are_the_output_of_the_module(make: Any) -> None:
    embedder = Embedder(make(), preprocessing=PLAIN, batch_size=2)
    found = embedder.transform(FILES)
    assert found.dtype == np.float32
    assert embedder.blocks_ == {"head": 3}
    np.testing.assert_allclose(found, expected(), rtol=1e-5, atol=1e-6)
    # The first finds the number of features.
    assert [run[0][0] for run in embedder.model.runs] == [1, 2, 2, 1]


def test_the_default_preprocessing_is_that_of_most_networks(make: Any) -> None:
    found = Embedder(make()).transform(FILES)
    np.testing.assert_allclose(found, expected(Preprocessing()), rtol=1e-4, atol=1e-5)


def test_a_module_runs_in_evaluation_mode_without_gradients_and_keeps_its_modes(make: Any) -> None:
    module = make()
    module.layer.eval()
    Embedder(module, preprocessing=PLAIN).transform(FILES)
    assert {run[2] for run in module.runs} == {(False, False, False)}
    assert (module.training, module.layer.training) == (True, False)


def test_modes_are_restored_after_an_error(make: Any) -> None:
    module = make(lambda means, batch: 1 / 0)
    with pytest.raises(ValueError, match="the torch module Means cannot be run: division by zero"):
        Embedder(module, preprocessing=PLAIN).fit()
    assert module.training


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.bfloat16, 0.05), (torch.float16, 0.01)]
)
def test_images_get_the_precision_of_the_parameters(dtype: Any, tolerance: float) -> None:
    module = Means().to(dtype)
    found = Embedder(module, preprocessing=PLAIN).transform(FILES)
    assert {run[1] for run in module.runs} == {dtype}
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("device", ["cpu", *DEVICES])
def test_a_device_by_name_moves_the_module_and_the_images(device: str) -> None:
    module = Means()
    with compute_on(device):
        found = Embedder(module, preprocessing=PLAIN, batch_size=2).transform(FILES)
    np.testing.assert_allclose(found, expected(), rtol=1e-5, atol=1e-6)
    kind = "cuda" if device == "cuda" else "cpu"
    assert {run[3] for run in module.runs} == {kind}
    assert module.weight.device.type == kind


@pytest.mark.gpu
def test_a_module_on_a_gpu_stays_there_and_gets_its_images_there() -> None:
    module = Means().cuda().half()
    found = Embedder(module, preprocessing=PLAIN, batch_size=2, n_jobs=2).transform(20 * FILES)
    assert {run[3] for run in module.runs} == {"cuda"}
    np.testing.assert_allclose(found, np.tile(expected(), (20, 1)), rtol=0.01, atol=0.01)


def test_the_device_can_change_between_runs() -> None:
    module, moved = Means(), []
    module.to = moved.append
    embedder = Embedder(module, preprocessing=PLAIN).fit()
    assert moved == []
    with compute_on("cpu"):
        embedder.transform(FILES)
    assert set(moved) == {"cpu"}


def test_a_full_device_says_to_use_smaller_batches() -> None:
    def fail(*_: Any) -> None:
        raise torch.OutOfMemoryError("full")

    module = Means()
    embedder = Embedder(module, preprocessing=PLAIN).fit()
    module.change = fail
    with pytest.raises(DeviceMemoryError, match=r"exhausted .* use a smaller batch_size"):
        embedder.transform(FILES)
    assert module.training


def test_a_batch_is_started_before_the_one_before_it_is_fetched() -> None:
    embedder, events = Embedder(Means(), preprocessing=PLAIN, batch_size=2), []
    network = embedder.network()
    start = network.start

    def recorded(prepared: Any) -> Any:
        events.append("start")
        finish = start(prepared)
        return lambda: (events.append("finish"), finish())[1]

    network.start = recorded
    np.testing.assert_allclose(embedder.transform(FILES), expected(), rtol=1e-5, atol=1e-6)
    assert events == ["start", "start", "finish", "start", "finish", "finish"]


def test_a_module_of_pooled_maps_is_flattened(make: Any) -> None:
    module = make(lambda means, batch: means[:, :, None, None])
    found = Embedder(module, preprocessing=PLAIN).transform(FILES)
    np.testing.assert_allclose(found, expected(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda means, batch: (means, batch), "must return a tensor .* got tuple"),
        (lambda means, batch: batch, r"one vector per image, shape \(n, n_features\)"),
        (lambda means, batch: means * float("nan"), "the torch module Means returns .* not finite"),
        (lambda means, batch: means[:0], "expected 1 rows"),
    ],
)
def test_a_module_must_return_one_finite_row_per_image(
    make: Any, change: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Embedder(make(change), preprocessing=PLAIN).fit()


def test_a_module_has_no_stages(make: Any) -> None:
    with pytest.raises(ValueError, match=r"stages must be \(\) .* a torch module"):
        Embedder(make(), stages=(1,)).fit()


def test_a_module_that_changes_is_not_cached(make: Any, tmp_path: Path) -> None:
    module = make()
    embedder = Embedder(module, preprocessing=PLAIN, cache=tmp_path)
    first = embedder.transform(FILES)
    module.change = lambda means, batch: means * 2
    np.testing.assert_allclose(embedder.transform(FILES), 2 * first, rtol=1e-6)
    assert not list(tmp_path.iterdir())


def test_a_module_refuses_to_be_saved_and_says_how(make: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"a torch module cannot be saved.*torch\.onnx\.export"):
        Embedder(make(), preprocessing=PLAIN).save(tmp_path / "model.evergrow")
    assert not list(tmp_path.iterdir())


def test_a_clone_shares_the_module(make: Any) -> None:
    embedder = Embedder([make(), OnnxModel(b"")], batch_size=3).set_output(transform="pandas")
    cloned = clone(embedder)
    assert cloned is not embedder
    assert cloned.model[0] is embedder.model[0]
    assert cloned.get_params() == embedder.get_params()
    assert cloned._sklearn_output_config == {"transform": "pandas"}


def test_a_module_can_stand_next_to_other_networks(make: Any) -> None:
    network = OnnxModel(onnx_model().SerializeToString())
    embedder = Embedder([network, make()], preprocessing=[None, PLAIN])
    assert embedder.blocks_ == {"0/head": 5, "1/head": 3}
    vectors = expected() / np.linalg.norm(expected(), axis=1, keepdims=True)
    np.testing.assert_allclose(embedder.transform(FILES)[:, 5:], vectors, rtol=1e-4, atol=1e-6)


def test_a_classifier_takes_a_module(make: Any) -> None:
    dark, bright = (np.full((8, 8, 3), value, np.uint8) for value in (10, 240))
    model = ImageClassifier(make()).fit([dark, bright], ["night", "day"])
    assert model.predict([bright, dark]).tolist() == ["day", "night"]
