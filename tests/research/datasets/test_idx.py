"""MNIST's files, and files that only look like them."""

import gzip
import struct

import numpy as np
import pytest

from evergrow import DatasetError
from evergrow.research import load_dataset
from tests.research.datasets.made import idx, mnist


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_four_files_are_read(tmp_path, suffix):
    arrays = mnist(tmp_path, suffix=suffix)
    data = load_dataset("mnist", path=tmp_path)
    assert data.name == "mnist"
    np.testing.assert_array_equal(data.X_train, arrays["train-images-idx3-ubyte"].reshape(12, 12))
    np.testing.assert_array_equal(data.y_test, arrays["t10k-labels-idx1-ubyte"])
    assert (data.X_train.dtype, data.y_train.dtype) == (np.float32, np.int64)


def test_names_with_a_dot_are_found(tmp_path):
    mnist(tmp_path)
    for path in list(tmp_path.iterdir()):
        path.rename(path.with_name(path.name.replace("-idx", ".idx")))
    assert len(load_dataset("mnist", path=tmp_path).X_train) == 12


def test_another_name_can_be_given(tmp_path):
    mnist(tmp_path)
    assert load_dataset("mnist", path=tmp_path, name="fashion").name == "fashion"


IMAGES = idx(np.zeros((12, 4, 3)))
HUGE = struct.pack(">4B3I", 0, 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1)
REFUSED = {
    "magic number": (b"\x00\x00\x08\x01" + IMAGES[4:], "starts with 00000801, not 00000803"),
    "type": (b"\x00\x00\x0d\x03" + IMAGES[4:], "starts with 00000d03"),
    "nothing": (b"", "starts with nothing"),
    "half a header": (IMAGES[:9], "truncated"),
    "half of the values": (IMAGES[:-50], "truncated"),
    "huge": (HUGE + b"1", "truncated: its header declares"),
    "more than it says": (IMAGES + b"1", "continues after the 144 values"),
    "fewer images": (idx(np.zeros((11, 4, 3))), "11 samples and .* 12 labels"),
    "other size": (idx(np.zeros((12, 5, 5))), "differ in size"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_files_that_are_not_images_are_refused(tmp_path, content, message, packed):
    mnist(tmp_path)
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DatasetError, match=message):
        load_dataset("mnist", path=tmp_path)


def test_a_damaged_gzip_file_is_refused(tmp_path):
    mnist(tmp_path, suffix=".gz")
    path = tmp_path / "train-labels-idx1-ubyte.gz"
    whole = path.read_bytes()
    for content in (whole[:-9], whole[:-8] + b"12345678", whole[:12] + b"\xff" + whole[13:]):
        path.write_bytes(content)
        with pytest.raises(
            DatasetError, match=r"train-labels-idx1-ubyte\.gz' is (damaged|truncated)"
        ):
            load_dataset("mnist", path=tmp_path)


def test_a_gzip_file_is_not_unpacked_beyond_what_its_header_claims(tmp_path):
    mnist(tmp_path, suffix=".gz")
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(IMAGES + bytes(50_000_000), compresslevel=1))
    with pytest.raises(DatasetError, match="continues after"):
        load_dataset("mnist", path=tmp_path)


def test_more_memory_than_allowed_is_refused(tmp_path):
    mnist(tmp_path)
    with pytest.raises(DatasetError, match="increase max_bytes"):
        load_dataset("mnist", path=tmp_path, max_bytes=300)


def test_missing_files_are_reported(tmp_path):
    mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match=r"neither t10k-labels-idx1-ubyte nor .*\.gz is in"):
        load_dataset("mnist", path=tmp_path)
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        load_dataset("mnist", path=tmp_path / "train-labels-idx1-ubyte")
