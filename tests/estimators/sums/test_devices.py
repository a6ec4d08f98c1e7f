"""The code of GPUs on torch's processor, against the core; with a GPU also there."""

from __future__ import annotations

import pickle
import threading
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
from evergrow.foundation.device import find_device, is_tensor, to_host
from evergrow.storage.device_rows import DeviceRows
from tests.devices import every_device, import_torch, on

torch = import_torch()

MODELS = {
    "inputs": RLSClassifier(),
    "fixed": RLSClassifier(regularization=0.5, recoding=0.3),
    "relu": RLSClassifier(n_random_features=200),
    "rff": RLSClassifier(n_random_features=201, feature_map="rff"),
    "auto": RLSClassifier(n_random_features="auto", max_stored=300, max_gram_memory="1MiB"),
    "standardized": RLSClassifier(standardize=True),
    "paper": RLSClassifier(selection="paper", scoring="regression"),
    "per class": RLSClassifier(keep_class_statistics=True),
    "without intercept": RLSClassifier(fit_intercept=False, n_random_features=90),
    "means": NCMClassifier(),
    "lda": NCMClassifier(metric="mahalanobis"),
    "lda per class": NCMClassifier(metric="mahalanobis", keep_class_statistics=True),
}
Data = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]


@pytest.fixture(scope="module")
def digits() -> Data:
    X, y = load_digits(return_X_y=True)
    return X[:900], y[:900], X[900:1200]


def pair(name: str, device: str) -> tuple[Any, Any]:
    here = clone(MODELS[name])
    here.set_params(**({"random_state": 0} if isinstance(here, RLSClassifier) else {}))
    return here, clone(here).set_params(device=device)


def assert_same(here: Any, there: Any, X: npt.NDArray[Any]) -> None:
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-9)
    assert (there.predict(X) == here.predict(X)).all()
    assert there.classes_.tolist() == here.classes_.tolist()


@every_device
@pytest.mark.parametrize("name", MODELS)
def test_a_device_learns_and_answers_as_the_core(name: str, device: str, digits: Data) -> None:
    X, y, X_test = digits
    here, there = pair(name, device)
    for model in (here, there):
        weights = np.random.default_rng(0).uniform(0.5, 2.0, 700)
        model.fit(X[:700][y[:700] < 8], y[:700][y[:700] < 8], weights[y[:700] < 8])
        model.partial_fit(X[:700][y[:700] >= 8], y[:700][y[:700] >= 8])
        model.partial_fit(X[700:703], y[700:703])
    if here._fitted.moments.settled is not None:
        assert is_tensor(there._fitted.moments.settled)
        assert not is_tensor(here._fitted.moments.settled)
    assert_same(here, there, X_test)
    assert (there.predict_top_k(X_test, 3) == here.predict_top_k(X_test, 3)).all()
    expected = here.decision_function(X_test)
    np.testing.assert_allclose(
        there.decision_function(X_test), expected, rtol=1e-9, atol=1e-9 * abs(expected).max()
    )


@every_device
def test_models_forget_merge_rename_and_move_between_devices(device: str, digits: Data) -> None:
    X, y, X_test = digits
    for name in ("relu", "per class", "lda per class"):
        here, there = pair(name, device)
        for model in (here, there):
            model.fit(X[:500], y[:500])
            model.forget(X[:40], y[:40])
            other = clone(model).set_params(device=None).fit(X[500:], y[500:])
            model.merge(other)
            model.rename_classes({3: 33})
            if "per class" in name:
                model.forget(classes=[5])
        assert_same(here, there, X_test)
        # From the device to the processor and back.
        for model, place in ((there, "cpu"), (there, device)):
            model.set_params(device=place)
            model.partial_fit(X[:100], y[:100])
            here.partial_fit(X[:100], y[:100])
            assert_same(here, model, X_test)


@every_device
@pytest.mark.parametrize("name", ["relu", "lda"])
def test_files_and_copies_do_not_need_the_device(
    name: str, device: str, digits: Data, tmp_path: Path
) -> None:
    X, y, X_test = digits
    _, there = pair(name, device)
    there.fit(X, y)
    save(there, tmp_path / "model.evergrow")
    again = load(tmp_path / "model.evergrow")
    assert again.device is None
    assert_same(again, there, X_test)
    assert not is_tensor(again._fitted.moments.settled)
    again.set_params(device=device).partial_fit(X[:200], y[:200])
    there.partial_fit(X[:200], y[:200])
    assert_same(again, there, X_test)


@every_device
@pytest.mark.parametrize("name", ["inputs", "relu", "means", "lda"])
def test_tensors_are_answered_where_they_lie(name: str, device: str, digits: Data) -> None:
    X, y, X_test = digits
    here, there = pair(name, device)
    rows, queries = on(device, X), on(device, X_test)
    here.fit(X, y)
    there.fit(rows, y)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        found = getattr(there, method)(queries)
        assert is_tensor(found), method
        assert found.device == queries.tensor.device
        np.testing.assert_allclose(to_host(found), getattr(here, method)(X_test), atol=1e-7)
    assert there.score(queries, here.predict(X_test)) == 1.0
    named = clone(there).fit(rows, np.array(list("abcdefghij"))[y])
    assert named.predict(queries).dtype.kind == "U"


@every_device
def test_shards_stream_to_the_device(device: str, digits: Data, tmp_path: Path) -> None:
    X, y, X_test = digits
    shards = write_shards(tmp_path / "shards", [X.astype(np.float32)])
    here, there = pair("relu", device)
    assert_same(here.fit(X, y), there.fit(shards, y), X_test)


@every_device
def test_tf32_is_close(device: str, digits: Data) -> None:
    X, y, X_test = digits
    here, there = pair("relu", device)
    there.set_params(precision="tf32")
    before = torch.get_float32_matmul_precision()
    answers = here.fit(X, y).predict(X_test), there.fit(X, y).predict(X_test)
    assert (answers[0] == answers[1]).mean() > 0.98
    assert torch.get_float32_matmul_precision() == before


@every_device
def test_rejection_takes_what_a_device_learnt(device: str, digits: Data) -> None:
    X, y, X_test = digits
    here, there = (RejectingClassifier(model) for model in pair("inputs", device))
    assert (here.fit(X, y).predict(X_test) == there.fit(X, y).predict(X_test)).all()


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
    with pytest.raises(InvalidInputError, match="device must be 'cpu', 'cuda'"):
        RLSClassifier(device="gpu").fit(X, y)
    with pytest.raises(InvalidInputError, match="too large to add up"):
        RLSClassifier(device="torch-cpu", regularization=1.0, recoding=0.0).fit(X * 1e140, y)
    if not torch.cuda.is_available():
        with pytest.raises(InvalidInputError, match="finds no GPU"):
            RLSClassifier(device="cuda").fit(X, y)


def test_the_number_of_a_gpu_that_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InvalidInputError, match="'cuda:3' but torch finds only 1 GPU;"):
        find_device("cuda:3")


def test_bfloat16_and_half_precision_rows(digits: Data) -> None:
    X, y, X_test = digits
    expected = NCMClassifier().fit(X, y).predict(X_test)
    for dtype in (torch.bfloat16, torch.float16, torch.int32, torch.uint8):
        rows = DeviceRows.of(torch.as_tensor(X).to(dtype))
        assert (NCMClassifier().fit(rows, y).predict(X_test) == expected).all()
        there = NCMClassifier(device="torch-cpu").fit(rows, y)
        assert (there.predict(X_test) == expected).all()


def test_a_full_device_says_what_would_fit(digits: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, X_test = digits
    model = RLSClassifier(n_random_features=100, random_state=0, device="torch-cpu").fit(X, y)
    before = model.predict_proba(X_test)

    def fill(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError

    target = "evergrow.estimators.sums.device_accumulator.DeviceAccumulator.add"
    with monkeypatch.context() as patch:
        patch.setattr(target, fill)
        patch.setattr("evergrow.foundation.device.Device.free_bytes", lambda _: 24 * 64**2)
        with pytest.raises(DeviceMemoryError, match="101 features are too many, about 64 would"):
            model.partial_fit(X, y)
    assert (model.predict_proba(X_test) == before).all()


def test_tf32_is_off_again_after_threads_used_it(digits: Data) -> None:
    X, y, X_test = digits
    model = RLSClassifier(n_random_features=300, device="torch-cpu", precision="tf32").fit(X, y)
    before = torch.get_float32_matmul_precision()
    threads = [threading.Thread(target=lambda: model.predict(X_test)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.get_float32_matmul_precision() == before


def test_large_numbers_stay_finite_in_tf32(digits: Data) -> None:
    X, y, X_test = digits
    model = RLSClassifier(n_random_features=100, device="torch-cpu", precision="tf32").fit(X, y)
    found = model.predict_proba(X_test[:5] * 1e60)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    with pytest.raises(InvalidInputError, match="use precision='double'"):
        model.partial_fit(X * 1e25, y)


@pytest.mark.parametrize("name", ["inputs", "lda", "lda per class"])
def test_pickles_hold_no_tensors(name: str, digits: Data) -> None:
    X, y, X_test = digits
    _, there = pair(name, "torch-cpu")
    there.fit(X, y).partial_fit(X[:3], y[:3])
    content = pickle.dumps(there.set_params(device=None))
    assert b"torch" not in content
    assert_same(pickle.loads(content), there, X_test)


@pytest.mark.parametrize("name", ["inputs", "relu", "lda"])
def test_few_examples_move_the_matrix_too(name: str, digits: Data) -> None:
    X, y, X_test = digits
    here, there = pair(name, "torch-cpu")
    for model in (here, there):
        model.fit(X, y).predict(X_test)
    for place in ("cpu", "torch-cpu", "cpu"):
        there.set_params(device=place).partial_fit(X[:2], y[:2])
        here.partial_fit(X[:2], y[:2])
        assert is_tensor(there._fitted.moments.settled) == (place != "cpu")
        assert_same(here, there, X_test)


def test_devices_are_checked_whenever_they_are_used(digits: Data) -> None:
    X, y, X_test = digits
    for model in (RLSClassifier(), NCMClassifier()):
        model.fit(X, y).set_params(device="nonsense")
        with pytest.raises(InvalidInputError, match="device must be 'cpu', 'cuda'"):
            model.predict(X_test)


@pytest.mark.parametrize("function", ["cholesky_solve", "linalg.solve_triangular", "clone"])
def test_a_full_gpu_is_one_error_wherever_it_happens(
    function: str, digits: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, X_test = digits
    model = RLSClassifier(n_random_features=100, random_state=0, device="torch-cpu")
    model.fit(X[:800], y[:800])

    def fill(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError

    with monkeypatch.context() as patch:
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
