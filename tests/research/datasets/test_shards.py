"""Folders of shards as data sets."""

import numpy as np
import pytest

from evergrow import DatasetError, DatasetWarning, write_shards
from evergrow.foundation.ragged import RaggedArray
from evergrow.research import load_dataset


def written(folder, n=8):
    X = np.arange(2 * n, dtype=np.float16)[:, None] * np.ones(3, np.float16)
    half = np.array(["cat"] * n), np.array(["dog"] * n)
    write_shards(folder, [(X[:n], half[0]), (X[n:], half[1])])
    return folder, X


def test_labelled_rows_are_split_and_read_as_float32(tmp_path):
    folder, X = written(tmp_path / "pets")
    data = load_dataset(folder, test_share=0.25)
    assert (data.name, data.X_train.shape, data.X_train.dtype) == ("pets", (12, 3), np.float32)
    assert data.y_test.tolist() == ["cat", "cat", "dog", "dog"]
    found = np.sort(np.concatenate([data.X_train, data.X_test])[:, 0])
    assert np.array_equal(found, X[:, 0])


def test_the_hash_is_that_of_the_shards(tmp_path):
    folder, _ = written(tmp_path / "pets")
    known = load_dataset(folder).sha256
    assert load_dataset(folder, sha256=known).sha256 == known
    with pytest.raises(ValueError, match="SHA-256"):
        load_dataset(folder, sha256="0" * 64)


def test_rows_without_a_label_are_left_out_with_a_warning(tmp_path):
    folder, X = written(tmp_path / "pets")
    write_shards(folder, [X[:5]])
    with pytest.warns(DatasetWarning, match="5 of 21 rows without a label"):
        data = load_dataset(folder)
    assert len(data.y_train) + len(data.y_test) == 16


@pytest.mark.parametrize(
    ("batches", "options", "error", "message"),
    [
        ([np.eye(4)], {}, ValueError, "has no labels"),
        ([(np.eye(4), [0, 0, 1, 1])], {"max_bytes": 63}, DatasetError, "needs 64 bytes of memory"),
        (
            [(RaggedArray(np.eye(4), np.array([0, 1, 4])), ["a", "b"])],
            {},
            DatasetError,
            "images of several rows",
        ),
    ],
    ids=["no labels", "too large", "several rows"],
)
def test_shards_that_are_not_samples_are_refused(tmp_path, batches, options, error, message):
    write_shards(tmp_path / "rows", batches)
    with pytest.raises(error, match=message):
        load_dataset(tmp_path / "rows", **options)
