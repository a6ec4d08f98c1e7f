"""Codebooks use no GPU, and take descriptors that lie on one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.devices import import_torch, on
from tests.vision.words.cases import CODEBOOKS, descriptors

torch = import_torch()


@pytest.mark.parametrize("make", CODEBOOKS.values(), ids=CODEBOOKS)
def test_words_lie_where_the_descriptors_do(make: Any) -> None:
    D = descriptors(200)
    codebook = make().fit(on("torch-cpu", D))
    words = codebook.transform(on("torch-cpu", D))
    assert isinstance(words, torch.Tensor)
    np.testing.assert_array_equal(words, make().fit(D).transform(D))
