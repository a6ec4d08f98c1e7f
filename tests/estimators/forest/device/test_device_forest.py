"""Forests on torch's processor answer as the core does; with a GPU also there."""

from __future__ import annotations

import gc
import io
import pickle
import weakref

import numpy as np
import pytest
from sklearn.datasets import load_digits

from evergrow import (
    AxisForestClassifier,
    LinearForestClassifier,
    NCMForestClassifier,
    SubcategoryForestClassifier,
    SVMForestClassifier,
)
from evergrow import device as compute_on
from evergrow.estimators import ClassMeans, Hierarchical, Storage
from evergrow.estimators.forest.device import device_forest, votes
from evergrow.estimators.forest.device.descent import GroupArrays, GroupDescent
from evergrow.estimators.forest.device.device_forest import DeviceStandardizer
from evergrow.estimators.forest.device.flat_forest import Groups, GroupShape, Nodes
from evergrow.estimators.forest.strategy import STRATEGIES
from evergrow.foundation.device import Device, to_host
from evergrow.foundation.errors import DeviceMemoryError
from evergrow.storage.device_rows import DeviceRows
from tests.devices import DEVICES, import_torch, on

torch = import_torch()

KINDS = [NCMForestClassifier, SVMForestClassifier, LinearForestClassifier, AxisForestClassifier]
X, Y = load_digits(return_X_y=True)
X_QUERY = X[1000:1300]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def check_same(forest, device, rows=X_QUERY, share=0.999):
    """Leaves, probabilities and labels are those of the core.

    On a GPU a share of the rows may differ: those between two sides.
    """
    share = 1.0 if device == "torch-cpu" else share
    expected = answers(forest, rows)
    with compute_on(device):
        found = answers(forest, rows)
    same = (found[0] == expected[0]).all(axis=1)
    np.testing.assert_allclose(found[1][same], expected[1][same], rtol=0, atol=1e-12)
    for place in (0, 2, 3):
        assert (found[place] == expected[place]).mean() >= share


def answers(forest, rows):
    best = forest.predict_top_k(rows, min(3, len(forest.classes_)))
    return forest.apply(rows), forest.predict_proba(rows), forest.predict(rows), best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("standardize", ["none", "scale"])
def test_kinds_answer_as_the_core(kind, standardize, device):
    forest = kind(6, random_state=0, standardize=standardize).fit(X[:600], Y[:600])
    check_same(forest, device)
    with compute_on(device):
        assert forest.apply(X_QUERY).dtype == np.int32


@pytest.mark.parametrize("update", ["uls", "igt", "rust", "rtst"])
def test_after_updates(update, device):
    old = Y[:500] < 8
    forest = NCMForestClassifier(6, random_state=0, update=STRATEGIES[update](refresh=0.3))
    forest.fit(X[:500][old], Y[:500][old])
    for part in range(500, 1000, 250):
        forest.partial_fit(X[part : part + 250], Y[part : part + 250])
    # Strategies that find splits again teach all classes to all trees.
    assert (forest._fitted.history.ages.votes is None) == (update in ("rust", "rtst"))
    check_same(forest, device)
    check_same(forest.forget(samples=np.arange(0, 300, 2)), device)


def test_equal_lengths_and_whitening(device):
    rng = np.random.default_rng(0)
    classes = np.arange(400) % 20
    rows = rng.normal(size=(400, 40)) + rng.normal(size=(20, 40))[classes]
    for parameters in ({}, {"standardize": "whiten"}, {"storage": Storage(dtype="float16")}):
        forest = NCMForestClassifier(5, random_state=0, **parameters).fit(rows, classes)
        check_same(forest, device, rows[::3] + 0.1)
        # Larger than any sample: such values are clipped.
        check_same(forest, device, rows[:5] * 1e30)


def test_small_classes_are_helped_as_in_the_core(device):
    few = (Y[:1000] != 3) | (np.arange(1000) < 60)
    for balance in ("auto", 1.0, 0.0):
        forest = NCMForestClassifier(6, random_state=0, balance=balance)
        check_same(forest.fit(X[:1000][few], Y[:1000][few]), device)


def test_integers_with_ties_go_the_same_way(device):
    rng = np.random.default_rng(1)
    rows, classes = rng.integers(-2, 3, (300, 3)), rng.integers(0, 6, 300)
    for kind in KINDS:
        forest = kind(8, min_samples_leaf=1, standardize="none", random_state=0)
        check_same(forest.fit(rows, classes), device, rng.integers(-2, 3, (200, 3)), 0.98)


def test_nodes_with_more_centroids_than_a_group_holds(device):
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(70, 8))
    classes = np.arange(420) % 70
    rows = centres[classes] + 0.3 * rng.normal(size=(420, 8))
    forest = NCMForestClassifier(3, splits=ClassMeans(1.0), random_state=0).fit(rows, classes)
    check_same(forest, device, rows + 0.1)


def test_trees_of_one_leaf(device):
    for kind in KINDS:
        check_same(kind(2, min_samples_leaf=50, random_state=0).fit(X[:60], Y[:60] % 2), device)


@pytest.mark.parametrize("shape", [GroupShape(2, 1), GroupShape(16, 2), GroupShape(128, 4)])
def test_groups_of_any_shape(shape):
    forest = NCMForestClassifier(4, random_state=0, standardize="none").fit(X[:600], Y[:600])
    nodes = Nodes.of(forest._fitted.forest)
    groups = Groups.of(nodes, shape)
    assert np.all((np.diff(groups.begin) <= shape.columns) | (shape.levels == 1))
    device = Device("cpu")
    scale = forest._fitted.standardization
    rows = torch.as_tensor(scale.apply(X_QUERY))
    descent = GroupDescent(device, nodes, GroupArrays(device, nodes, shape))
    found = nodes.leaves[descent.leaves(rows).numpy()] - nodes.roots
    np.testing.assert_array_equal(found, forest.apply(X_QUERY))


def test_many_classes_need_no_dense_table(monkeypatch, device):
    monkeypatch.setattr(votes, "_DENSE_BYTES", 0)
    check_same(NCMForestClassifier(6, random_state=0).fit(X[:600], Y[:600]), device)


def test_blocks(monkeypatch):
    forest = NCMForestClassifier(4, random_state=0).fit(X[:600], Y[:600])
    expected = forest.predict_proba(X_QUERY)
    forest._fitted.on(Device("cpu")).copy.block_rows = 64
    with compute_on("torch-cpu"):
        np.testing.assert_array_equal(forest.predict_proba(X_QUERY), expected)
        monkeypatch.setattr("evergrow.estimators.classifier.predictor._HELD_BYTES", 1000)
        np.testing.assert_array_equal(forest.predict_proba(X_QUERY), expected)
        np.testing.assert_array_equal(forest.predict(X_QUERY), expected.argmax(axis=1))


@pytest.mark.parametrize("method", ["ridge-h", "joint", "stacked", "fine-only"])
def test_coarse_and_fine_classes(method, device):
    fine = np.where(np.arange(len(Y)) % 3 == 0, Y, -1)
    labels = np.column_stack([Y % 2 + 20, fine])
    forest = SubcategoryForestClassifier(4, method=method, random_state=0)
    forest.fit(X[:500], labels[:500])
    check_same(forest, device)
    coarse = forest.predict_proba(X_QUERY, level="coarse")
    levels = forest.predict_levels(X_QUERY, back_off=0.5)
    with compute_on(device):
        there = forest.predict_proba(X_QUERY, level="coarse")
        assert (np.abs(there - coarse).max(axis=1) < 1e-12).mean() > 0.97
        assert (forest.predict_levels(X_QUERY, back_off=0.5).fine == levels.fine).mean() > 0.99
    check_same(forest.set_params(method=Hierarchical(smoothing=30.0)), device)


@pytest.mark.parametrize("computes_on", ["samples", "cpu", "device"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int16"])
def test_rows_on_a_device_have_answers_there(device, computes_on, dtype):
    names = {"samples": None, "cpu": "cpu", "device": device}
    forest = NCMForestClassifier(4, random_state=0).fit(X[:600], Y[:600])
    rows = on(device, X_QUERY.astype(dtype))
    with compute_on(names[computes_on]):
        probabilities, labels, leaves = (
            answer(rows) for answer in (forest.predict_proba, forest.predict, forest.apply)
        )
    for found in (probabilities, labels, leaves):
        assert isinstance(found, torch.Tensor)
        assert found.device == rows.tensor.device
    same = np.abs(to_host(probabilities) - forest.predict_proba(X_QUERY)).max(axis=1) < 1e-12
    assert same.mean() > 0.99
    assert (to_host(labels) == forest.predict(X_QUERY)).mean() > 0.99
    assert (to_host(leaves) == forest.apply(X_QUERY)).mean() > 0.99


def test_names_of_classes_are_never_tensors():
    names = np.array(list("abcdefghij"))[Y]
    forest = NCMForestClassifier(4, random_state=0).fit(X[:600], names[:600])
    rows = DeviceRows.of(torch.as_tensor(X_QUERY))
    with compute_on("torch-cpu"):
        assert forest.predict(rows).tolist() == forest.predict(X_QUERY).tolist()
        assert forest.predict_top_k(rows, 2).dtype.kind == "U"


def test_pickles_do_not_hold_the_copy_on_the_device():
    forest = NCMForestClassifier(4, random_state=0).fit(X[:600], Y[:600])
    with compute_on("torch-cpu"):
        expected = forest.predict(X_QUERY)
    size = len(pickle.dumps(forest._fitted))
    fresh = NCMForestClassifier(4, random_state=0).fit(X[:600], Y[:600])
    assert abs(size - len(pickle.dumps(fresh._fitted))) < 1000
    copy = pickle.load(io.BytesIO(pickle.dumps(forest)))
    np.testing.assert_array_equal(copy.predict(X_QUERY), expected)


def test_copy_on_the_device_goes_with_the_fitted_value():
    forest = NCMForestClassifier(4, random_state=0).fit(X[:600], Y[:600])
    copy = forest._fitted.on(Device("cpu")).copy
    assert copy is forest._fitted.on(Device("cpu")).copy
    gone = weakref.ref(copy)
    del copy
    forest.partial_fit(X[600:700], Y[600:700])
    gc.collect()
    assert gone() is None
    check_same(forest, "torch-cpu")


def test_full_memory_says_what_to_do(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("out of memory")

    forest = NCMForestClassifier(2, random_state=0).fit(X[:100], Y[:100])
    monkeypatch.setattr(GroupDescent, "leaves", full)
    message = r"use evergrow.device\('cpu'\)"
    with compute_on("torch-cpu"), pytest.raises(DeviceMemoryError, match=message):
        forest.predict_proba(X_QUERY)


def test_training_does_not_depend_on_the_device():
    plain = NCMForestClassifier(3, random_state=0).fit(X[:300], Y[:300])
    with compute_on("torch-cpu"):
        other = NCMForestClassifier(3, random_state=0).fit(X[:300], Y[:300])
    for t in range(3):
        for name, array in plain._fitted.forest.tree_arrays(t).items():
            np.testing.assert_array_equal(other._fitted.forest.tree_arrays(t)[name], array)


class Compiled(GroupDescent):
    """Like compiled kernels: it takes padded rows, and is checked; ``spoil`` changes its answer."""

    is_compiled = True

    def __init__(self, device, nodes, spoil):
        super().__init__(device, nodes, GroupArrays(device, nodes))
        self.n_features, self.width = self.width, self.width + 16
        self.spoil = spoil

    def leaves(self, rows):
        assert rows.shape[1] == self.width
        self.width, padded = self.n_features, self.width
        try:
            return self.spoil(super().leaves(rows[:, : self.n_features]))
        finally:
            self.width = padded


@pytest.fixture
def compiled(monkeypatch):
    """Forests on a device have descents that answer as this function changes it."""

    def use(spoil):
        monkeypatch.setattr(
            device_forest, "_descent", lambda device, _, nodes, __: Compiled(device, nodes, spoil)
        )

    return use


def test_kernels_that_are_wrong_are_not_used(compiled):
    forest = NCMForestClassifier(4, random_state=0).fit(X[:900], Y[:900])
    expected = forest.predict_proba(X_QUERY)
    compiled(lambda leaves: leaves.flip(0))
    with compute_on("torch-cpu"):
        with pytest.warns(RuntimeWarning, match="plain torch is used"):
            found = forest.predict_proba(X_QUERY)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        # It warns once.
        np.testing.assert_allclose(forest.predict_proba(X_QUERY), expected, atol=1e-12)


def test_one_row_between_two_sides_does_not_make_kernels_wrong(compiled):
    forest = NCMForestClassifier(4, random_state=0).fit(X[:900], Y[:900])
    expected = forest.apply(X_QUERY)

    def move_first(leaves):
        leaves[0, 0] += 1
        return leaves

    compiled(move_first)
    with compute_on("torch-cpu"):
        for n in (1, 10, 300):
            assert (forest.apply(X_QUERY[:n]) != expected[:n]).sum() == 1


def test_kernels_may_be_replaced_by_another_thread(compiled, monkeypatch):
    forest = NCMForestClassifier(4, random_state=0).fit(X[:900], Y[:900])
    expected = forest.apply(X_QUERY)
    compiled(lambda leaves: leaves)
    copy, nodes = forest._fitted.on(Device("cpu")).copy, Nodes.of(forest._fitted.forest)
    plain = GroupDescent(copy.device, nodes, GroupArrays(copy.device, nodes))
    apply = DeviceStandardizer.apply

    def replaced_meanwhile(self, rows, width):
        copy.descent = plain
        return apply(self, rows, width)

    monkeypatch.setattr(DeviceStandardizer, "apply", replaced_meanwhile)
    with compute_on("torch-cpu"):
        found = forest.apply(X_QUERY)
    np.testing.assert_array_equal(found, expected)
