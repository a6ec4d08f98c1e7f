"""The code of GPUs on torch's processor, against the core; with a GPU also there."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from evergrow import (
    DeviceMemoryError,
    InvalidInputError,
    NCMClassifier,
    RejectingClassifier,
    RLSClassifier,
    load,
    save,
    write_shards,
)
from evergrow import device as compute_on
from evergrow.estimators import RFF, Auto, HoldOut, LeaveOneOut, ReLU
from evergrow.foundation.device import find_device, is_tensor, named_device, to_host
from evergrow.storage.device_rows import DeviceRows
from tests.devices import every_device, import_torch, on

torch = import_torch()

MODELS = {
    "inputs": RLSClassifier(),
    "fixed": RLSClassifier(regularization=0.5, recoding=0.3),
    "relu": RLSClassifier(features=ReLU(200)),
    "rff": RLSClassifier(features=RFF(201)),
    "auto": RLSClassifier(features=Auto("1MiB"), selection=LeaveOneOut(300)),
    "standardized": RLSClassifier(standardize=True),
    "paper": RLSClassifier(selection=HoldOut(), scoring="regression"),
    "per class": RLSClassifier(keep_class_statistics=True),
    "without intercept": RLSClassifier(fit_intercept=False, features=ReLU(90)),
    "means": NCMClassifier(),
    "lda": NCMClassifier(metric="mahalanobis"),
    "lda per class": NCMClassifier(metric="mahalanobis", keep_class_statistics=True),
}
Data = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]


@pytest.fixture(scope="module")
def digits() -> Data:
    X, y = load_digits(return_X_y=True)
    return X[:900], y[:900], X[900:1200]


def pair(name: str) -> tuple[Any, Any]:
    here = clone(MODELS[name])
    here.set_params(**({"random_state": 0} if isinstance(here, RLSClassifier) else {}))
    return here, clone(here)


def places(here: Any, there: Any, device: str) -> Iterator[Any]:
    """The first model, and in a block of the device the second one."""
    yield here
    with compute_on(device):
        yield there


def assert_same(here: Any, there: Any, X: npt.NDArray[Any], device: str) -> None:
    expected = here.predict_proba(X), here.predict(X)
    with compute_on(device):
        np.testing.assert_allclose(there.predict_proba(X), expected[0], atol=1e-9)
        assert (there.predict(X) == expected[1]).all()
    assert there.classes_.tolist() == here.classes_.tolist()


@every_device
@pytest.mark.parametrize("name", MODELS)
def test_a_device_learns_and_answers_as_the_core(name: str, device: str, digits: Data) -> None:
    X, y, X_test = digits
    here, there = pair(name)
    for model in places(here, there, device):
        weights = np.random.default_rng(0).uniform(0.5, 2.0, 700)
        model.fit(X[:700][y[:700] < 8], y[:700][y[:700] < 8], weights[y[:700] < 8])
        model.partial_fit(X[:700][y[:700] >= 8], y[:700][y[:700] >= 8])
        model.partial_fit(X[700:703], y[700:703])
    if here._fitted.moments.settled is not None:
        assert is_tensor(there._fitted.moments.settled)
        assert not is_tensor(here._fitted.moments.settled)
    assert_same(here, there, X_test, device)
    found = [
        (m.predict_top_k(X_test, 3), m.decision_function(X_test))
        for m in places(here, there, device)
    ]
    assert (found[0][0] == found[1][0]).all()
    atol = 1e-9 * abs(found[0][1]).max()
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-9, atol=atol)


@every_device
def test_models_forget_merge_rename_and_move_between_devices(device: str, digits: Data) -> None:
    X, y, X_test = digits
    for name in ("relu", "per class", "lda per class"):
        here, there = pair(name)
        other = clone(here).fit(X[500:], y[500:])
        for model in places(here, there, device):
            model.fit(X[:500], y[:500])
            model.forget(X[:40], y[:40])
            model.merge(other)
            model.rename_classes({3: 33})
            if "per class" in name:
                model.forget(classes=[5])
        assert_same(here, there, X_test, device)
        # From the device to the processor and back.
        for place, n in (("cpu", 100), (device, 2), ("cpu", 2)):
            for model in places(here, there, place):
                model.partial_fit(X[:n], y[:n])
            assert is_tensor(there._fitted.moments.settled) == (place != "cpu")
            assert_same(here, there, X_test, place)


@every_device
@pytest.mark.parametrize("name", ["relu", "lda per class"])
def test_files_and_copies_do_not_need_the_device(
    name: str, device: str, digits: Data, tmp_path: Path
) -> None:
    X, y, X_test = digits
    _, there = pair(name)
    with compute_on(device):
        there.fit(X, y).partial_fit(X[:3], y[:3])
        content = pickle.dumps(there)
    assert b"torch" not in content
    save(there, tmp_path / "model.evergrow")
    for again in (load(tmp_path / "model.evergrow"), pickle.loads(content)):
        assert not is_tensor(again._fitted.moments.settled)
        assert_same(again, there, X_test, device)


@every_device
@pytest.mark.parametrize("name", ["inputs", "relu", "means", "lda"])
def test_tensors_are_answered_where_they_lie(name: str, device: str, digits: Data) -> None:
    X, y, X_test = digits
    here, there = pair(name)
    rows, queries = on(device, X), on(device, X_test)
    methods = ("predict", "predict_proba", "predict_log_proba", "decision_function")
    expected = [getattr(here.fit(X, y), method)(X_test) for method in methods]
    with compute_on(device):
        there.fit(rows, y)
        for method, answer in zip(methods, expected, strict=True):
            found = getattr(there, method)(queries)
            assert is_tensor(found), method
            assert found.device == queries.tensor.device
            np.testing.assert_allclose(to_host(found), answer, atol=1e-7)
        assert there.score(queries, expected[0]) == 1.0
        named = clone(there).fit(rows, np.array(list("abcdefghij"))[y])
        assert named.predict(queries).dtype.kind == "U"


@every_device
def test_shards_stream_to_the_device(device: str, digits: Data, tmp_path: Path) -> None:
    X, y, X_test = digits
    shards = write_shards(tmp_path / "shards", [X.astype(np.float32)])
    here, there = pair("relu")
    with compute_on(device):
        there.fit(shards, y)
    assert_same(here.fit(X, y), there, X_test, device)


@every_device
@pytest.mark.parametrize("name", ["relu", "means", "lda"])
def test_tf32_is_close(name: str, device: str, digits: Data) -> None:
    # Integers would be exact.
    X, y, X_test = 0.1 * digits[0], digits[1], 0.1 * digits[2]
    here, there = pair(name)
    before = torch.get_float32_matmul_precision()
    expected = here.fit(X, y).predict(X_test)
    with compute_on(device, precision="tf32"):
        found = there.fit(X, y).predict(X_test)
    assert (found == expected).mean() > 0.98
    assert (there.predict_proba(X_test) != here.predict_proba(X_test)).any()
    assert torch.get_float32_matmul_precision() == before


@every_device
def test_rejection_takes_what_a_device_learnt(device: str, digits: Data) -> None:
    X, y, X_test = digits
    one, other = (RejectingClassifier(model, random_state=0) for model in pair("inputs"))
    models = places(one, other, device)
    here, there = (model.fit(X, y).predict(X_test) for model in models)
    assert (here == there).all()


def test_bad_tensors_and_devices_are_refused(digits: Data) -> None:
    X, y, _ = digits
    rows = torch.as_tensor(X)
    with pytest.raises(InvalidInputError, match="contains NaN"):
        DeviceRows.of(torch.where(rows == 0, torch.nan, rows))
    with pytest.raises(InvalidInputError, match="contains infinity"):
        DeviceRows.of(torch.where(rows == 0, torch.inf, rows))
    with pytest.raises(InvalidInputError, match="Expected 2D array"):
        DeviceRows.of(rows[0])
    with pytest.raises(InvalidInputError, match="must be real numbers"):
        DeviceRows.of(rows.to(torch.complex128))
    model = RLSClassifier(regularization=1.0, recoding=0.0)
    with compute_on("torch-cpu"), pytest.raises(InvalidInputError, match="too large to add up"):
        model.fit(X * 1e140, y)
    if not torch.cuda.is_available():
        with pytest.raises(InvalidInputError, match="finds no GPU"), compute_on("cuda"):
            pass


def test_the_number_of_a_gpu_that_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InvalidInputError, match="'cuda:3' but torch finds only 1 GPU;"):
        named_device("cuda:3")


def test_bfloat16_and_half_precision_rows(digits: Data) -> None:
    X, y, X_test = digits
    expected = NCMClassifier().fit(X, y).predict(X_test)
    for dtype in (torch.bfloat16, torch.float16, torch.int32, torch.uint8):
        rows = DeviceRows.of(torch.as_tensor(X).to(dtype))
        assert (NCMClassifier().fit(rows, y).predict(X_test) == expected).all()
        with compute_on("torch-cpu"):
            assert (NCMClassifier().fit(rows, y).predict(X_test) == expected).all()


def test_a_full_device_says_what_would_fit(digits: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, X_test = digits
    model = RLSClassifier(features=ReLU(100), random_state=0).fit(X, y)
    before = model.predict_proba(X_test)

    def fill(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError

    target = "evergrow.estimators.sums.device_accumulator.DeviceAccumulator.add"
    with monkeypatch.context() as patch:
        patch.setattr(target, fill)
        patch.setattr("evergrow.foundation.device.Device.free_bytes", lambda _: 24 * 64**2)
        message = "101 features are too many, about 64 would"
        with compute_on("torch-cpu"), pytest.raises(DeviceMemoryError, match=message):
            model.partial_fit(X, y)
    assert (model.predict_proba(X_test) == before).all()


def test_tf32_is_off_again_after_threads_used_it(digits: Data) -> None:
    X, y, X_test = digits
    model = RLSClassifier(features=ReLU(300)).fit(X, y)
    before = torch.get_float32_matmul_precision()

    def predict() -> None:
        with compute_on("torch-cpu", precision="tf32"):
            model.predict(X_test)

    threads = [threading.Thread(target=predict) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.get_float32_matmul_precision() == before


def test_large_numbers_stay_finite_in_tf32(digits: Data) -> None:
    X, y, X_test = digits
    with compute_on("torch-cpu", precision="tf32"):
        model = RLSClassifier(features=ReLU(100)).fit(X, y)
        found = model.predict_proba(X_test[:5] * 1e60)
        with pytest.raises(InvalidInputError, match="use precision='double'"):
            model.partial_fit(X * 1e25, y)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_blocks_nest_and_belong_to_a_thread() -> None:
    found: list[Any] = []
    rows = np.zeros((1, 1))
    thread = threading.Thread(target=lambda: found.append(find_device(rows)))
    with compute_on("torch-cpu", precision="tf32"):
        outer = find_device(rows)
        assert outer is not None
        assert outer.precision == "tf32"
        with compute_on("cpu"):
            assert find_device(on("torch-cpu", rows)) is None
            thread.start()
            thread.join()
        with compute_on("torch-cpu"):
            inner = find_device(rows)
            assert inner is not None
            assert inner.precision == "double"
            assert inner == outer
        with compute_on():
            assert find_device(rows) is None
        assert find_device(rows) == outer
    assert [*found, find_device(rows)] == [None, None]


@pytest.mark.parametrize("function", ["cholesky_solve", "linalg.solve_triangular", "clone"])
def test_a_full_gpu_is_one_error_wherever_it_happens(
    function: str, digits: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, X_test = digits
    model = RLSClassifier(features=ReLU(100), random_state=0)
    with compute_on("torch-cpu"):
        model.fit(X[:800], y[:800])

    def fill(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError

    with monkeypatch.context() as patch, compute_on("torch-cpu"):
        patch.setattr(f"torch.{function}", fill)
        if function == "clone":
            patch.setattr(torch.Tensor, "clone", fill)
        with pytest.raises(DeviceMemoryError):
            clone(model).fit(X, y).predict(X_test)
        if function == "clone":
            with pytest.raises(DeviceMemoryError):
                model.partial_fit(X[800:], y[800:])
            with pytest.raises(DeviceMemoryError):
                model.forget(X[:40], y[:40])
    model.partial_fit(X[800:], y[800:]).predict(X_test)


def test_tensors_on_the_processor_are_arrays(digits: Data) -> None:
    X, y, X_test = digits
    expected = NCMClassifier().fit(X, y).predict(X_test)
    with_gradients = torch.tensor(X, requires_grad=True)
    assert (NCMClassifier().fit(with_gradients, y).predict(X_test) == expected).all()
    rounded = torch.tensor(X).to(torch.bfloat16)
    assert (NCMClassifier().fit(rounded, torch.tensor(y)).predict(X_test) == expected).all()
    huge = DeviceRows.of(torch.full((4, 2), 1e308, dtype=torch.float64))
    assert huge.shape == (4, 2)
