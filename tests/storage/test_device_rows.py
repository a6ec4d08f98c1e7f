"""Rows in a tensor, with the interface of rows on disk."""

from __future__ import annotations

import numpy as np
import pytest

from evergrow.foundation.device import Device, array_module, named_device, to_host
from evergrow.storage import device_rows
from evergrow.storage.device_rows import DeviceRows, Uploader, device_blocks, load_tensor
from evergrow.storage.shards import StoredRows
from tests.devices import every_device, import_torch, on

torch = import_torch()
X = np.random.default_rng(0).normal(size=(20, 3))


@every_device
def test_rows_read_like_an_array(device: str) -> None:
    rows = on(device, X)
    assert isinstance(rows, StoredRows)
    np.testing.assert_array_equal(np.asarray(rows), X)
    np.testing.assert_array_equal(rows[[5, 1, 1]], X[[5, 1, 1]])
    np.testing.assert_array_equal(rows[3:9:2], X[3:9:2])


@every_device
@pytest.mark.parametrize("chosen", [[7, 2, 2], np.arange(20) % 3 == 0])
def test_chosen_rows_stay_on_the_device(device: str, chosen: object) -> None:
    rows = on(device, X)
    some = rows.choose(chosen)
    assert isinstance(some, DeviceRows)
    assert some.tensor.device == rows.tensor.device
    np.testing.assert_array_equal(np.asarray(some), X[chosen])


@pytest.mark.parametrize("n_bytes", [1, 100, 1 << 20])
@pytest.mark.parametrize("stored", [False, True])
def test_blocks_have_all_rows_in_order(
    n_bytes: int, stored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_rows, "_BLOCK_BYTES", n_bytes)
    rows = on("torch-cpu", X) if stored else X
    blocks = list(device_blocks(rows, Device("cpu"), torch.float32))
    np.testing.assert_array_equal(torch.cat([b for _, b in blocks]), X.astype(np.float32))
    assert [part.start for part, _ in blocks] == [0, *(part.stop for part, _ in blocks[:-1])]


@every_device
def test_uploaded_blocks_keep_their_values_while_buffers_are_reused(device: str) -> None:
    found = named_device(device)
    assert found is not None
    uploader = Uploader(found)
    blocks = [
        np.full((size, 3), size, dtype=dtype)
        for size in (4, 1, 9, 2, 9)
        for dtype in (np.float32, np.float64, np.int64, np.int16)
    ]
    tensors = [uploader.upload(block) for block in blocks]
    for tensor, block in zip(tensors, blocks, strict=True):
        np.testing.assert_array_equal(to_host(tensor), block)
        assert to_host(tensor).dtype == block.dtype


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16, ">f8"])
def test_a_tensor_has_the_precision_of_the_rows(dtype: str) -> None:
    values = (X * 8).astype(dtype)
    found = load_tensor(values, Device("cpu"))
    single = values.dtype in (np.float16, np.float32)
    assert found.dtype == (torch.float32 if single else torch.float64)
    np.testing.assert_array_equal(found.numpy(), values.astype(np.float64))


def test_rows_that_lie_there_in_the_right_precision_are_not_copied() -> None:
    rows = on("torch-cpu", X)
    assert load_tensor(rows, Device("cpu")).data_ptr() == rows.tensor.data_ptr()
    assert load_tensor(rows, Device("cpu"), torch.float32).dtype == torch.float32


def test_numbers_whose_squares_overflow_are_refused() -> None:
    on("torch-cpu", X).check_magnitude(1e140)
    with pytest.raises(ValueError, match="too large to add up their squares, above 1e\\+140"):
        on("torch-cpu", np.array([[-1e141]])).check_magnitude(1e140)


def test_the_module_of_an_array_is_that_of_its_library() -> None:
    assert array_module(torch.zeros(1)) is torch
    assert array_module(X) is np
