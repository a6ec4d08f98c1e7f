"""Kernels take rows to the leaves that plain torch finds.

Without a GPU they are run by Triton's interpreter, if Triton is installed.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.datasets import load_digits

from evergrow import LinearForestClassifier, NCMForestClassifier, SVMForestClassifier
from evergrow.estimators import ClassMeans
from evergrow.estimators.forest.device.descent import GroupArrays, GroupDescent
from evergrow.estimators.forest.device.flat_forest import GroupShape, Nodes
from evergrow.foundation.device import Device
from tests.devices import import_torch

torch = import_torch()
if not torch.cuda.is_available():
    # Triton reads it when the kernels are imported.
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="kernels need Triton")

from evergrow.estimators.forest.device.kernels import TritonDescent  # noqa: E402

X, Y = load_digits(return_X_y=True)
DEVICE = Device("cuda:0" if torch.cuda.is_available() else "cpu")


def share_of_equal_leaves(forest, rows, shape=None):
    nodes = Nodes.of(forest._fitted.forest)
    arrays = GroupArrays(DEVICE, nodes, shape)
    plain, compiled = GroupDescent(DEVICE, nodes, arrays), TritonDescent(DEVICE, nodes, arrays)
    block = DEVICE.tensor(forest._fitted.standardization.apply(rows))
    padded = torch.nn.functional.pad(block, (0, compiled.width - plain.width))
    return float((plain.leaves(block) == compiled.leaves(padded)).double().mean())


@pytest.mark.parametrize("kind", [NCMForestClassifier, SVMForestClassifier, LinearForestClassifier])
def test_every_kind(kind):
    forest = kind(2, random_state=0).fit(X[:300], Y[:300])
    assert share_of_equal_leaves(forest, X[1000:1060]) > 0.98


@pytest.mark.parametrize("shape", [GroupShape(16, 1), GroupShape(16, 3)])
def test_groups_of_several_chunks_of_columns(shape):
    rng = np.random.default_rng(0)
    centres, classes = rng.normal(size=(40, 5)), np.arange(240) % 40
    rows = centres[classes] + 0.3 * rng.normal(size=(240, 5))
    forest = NCMForestClassifier(2, splits=ClassMeans(1.0), random_state=0).fit(rows, classes)
    assert share_of_equal_leaves(forest, rows[:50] + 0.1, shape) > 0.98


def test_ties_go_to_the_first_column():
    rng = np.random.default_rng(1)
    rows, classes = rng.integers(-2, 3, (200, 3)), rng.integers(0, 6, 200)
    forest = NCMForestClassifier(3, min_samples_leaf=1, standardize="none", random_state=0)
    forest.fit(rows, classes)
    assert share_of_equal_leaves(forest, rng.integers(-2, 3, (60, 3))) == 1.0


def test_trees_of_one_leaf():
    forest = NCMForestClassifier(2, min_samples_leaf=50, random_state=0).fit(X[:60], Y[:60] % 2)
    assert share_of_equal_leaves(forest, X[:5]) == 1.0
