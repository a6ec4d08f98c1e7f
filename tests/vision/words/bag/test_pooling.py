"""From counts to vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from evergrow.vision.words.bag import pooling
from evergrow.vision.words.bag.pooling import POOLINGS, mutual_information_thresholds
from tests.reference import bag_of_words as twin

COUNTS = sparse.csr_array(np.array([[3, 0, 1], [0, 0, 0], [2, 2, 0]], dtype=np.int32))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("binary", [[1, 0, 1], [0, 0, 0], [1, 1, 0]]),
        ("counts", [[3, 0, 1], [0, 0, 0], [2, 2, 0]]),
        ("sum", [[0.75, 0, 0.25], [0, 0, 0], [0.5, 0.5, 0]]),
        ("sqrt", [[0.75**0.5, 0, 0.5], [0, 0, 0], [0.5**0.5, 0.5**0.5, 0]]),
        ("mutual_information", [[1, 0, 0], [0, 0, 0], [0, 1, 0]]),
    ],
)
def test_counts_become_vectors(name: str, expected: Any) -> None:
    before = COUNTS.toarray()
    pooled = POOLINGS[name].pool(COUNTS, np.array([3, 1, 2], dtype=np.int32))
    np.testing.assert_array_equal(pooled.toarray(), np.array(expected, dtype=np.float32))
    assert pooled.dtype == np.float32
    np.testing.assert_array_equal(COUNTS.toarray(), before)


def test_what_does_not_reach_its_threshold_takes_no_memory() -> None:
    assert POOLINGS["mutual_information"].pool(COUNTS, np.array([9, 9, 9])).nnz == 0


def test_thresholds_are_needed_where_they_are_learnt() -> None:
    with pytest.raises(ValueError, match="needs thresholds"):
        POOLINGS["mutual_information"].pool(COUNTS, None)


@pytest.mark.parametrize("block", [1, 7, 1 << 22])
@given(seed=st.integers(0, 10**6), n_classes=st.integers(1, 4), most=st.integers(1, 6))
def test_thresholds_are_those_of_the_twin(block: int, seed: int, n_classes: int, most: int) -> None:
    random = np.random.default_rng(seed)
    counts = random.integers(0, most + 1, (12, 8)) * random.integers(0, 2, (12, 8))
    codes = random.integers(0, n_classes, 12).astype(np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "_BLOCK_NUMBERS", block)
        found = mutual_information_thresholds(sparse.csr_array(counts), codes)
    assert found.tolist() == twin.thresholds(counts, codes)


def test_a_word_that_all_images_have_gets_a_threshold_above_one() -> None:
    counts = sparse.csr_array(np.array([[5], [7], [1], [2]]))
    codes = np.array([0, 0, 1, 1], dtype=np.int32)
    assert mutual_information_thresholds(counts, codes).tolist() == [3]
