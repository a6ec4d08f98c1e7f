"""A forest on one device: from rows to leaves and probabilities."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.device.descent import (
    Descent,
    GroupArrays,
    GroupDescent,
    ThresholdDescent,
)
from evergrow.estimators.forest.device.flat_forest import Nodes
from evergrow.estimators.forest.device.votes import LeafVotes
from evergrow.foundation.device import Device, Tensor, import_torch
from evergrow.foundation.errors import warn_user
from evergrow.storage.device_rows import upload_blocks

# Rows that descend together: enough to fill the device, few enough for its cache.
BLOCK_ROWS = 16384
# Pairs of a row and a tree that descend together, and bytes of the probabilities of a block.
_MOST_PAIRS = 1 << 24
_PROBABILITY_BYTES = 256 << 20
# Share of leaves in which kernels may differ from plain torch, at most: those of rows that are as
# near to one side of a node as to the other.
_MOST_DIFFERENT = 0.01
_TOO_LARGE = "the trees do not fit: grow fewer trees, free memory, or use evergrow.device('cpu')"
_ADVICE = "predict with fewer trees or a smaller forest, free memory, or use evergrow.device('cpu')"


class DeviceCache:
    """Copies of one fitted forest on devices, made on first use; they are not pickled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[Device, DeviceForest] = {}

    def of(self, device: Device, forest: _core.Forest, scale: Any) -> DeviceForest:
        """Return the copy of a forest on a device; ``scale`` is its transform of the features."""
        with self._lock, device.report_full(_TOO_LARGE):
            if device not in self._found:
                standardizer = DeviceStandardizer(
                    device, scale.mean, scale.scale, scale.whitening, scale.length_features
                )
                self._found[device] = DeviceForest(device, forest, standardizer)
            return self._found[device]


class DeviceForest:
    """The trees of a forest and the transform of its features on one device."""

    def __init__(
        self, device: Device, forest: _core.Forest, standardizer: DeviceStandardizer
    ) -> None:
        nodes = Nodes.of(forest)
        self.device, self.standardizer = device, standardizer
        self._forest = forest
        # Numbers of nodes are counted per tree.
        tree = np.searchsorted(nodes.roots, nodes.leaves, side="right") - 1
        self._node = device.tensor((nodes.leaves - nodes.roots[tree]).astype(np.int32))
        self.descent: Descent = _descent(device, forest.kind, nodes, standardizer.n_features)
        # Most rows at once that compiled kernels were checked with; more may use other kernels.
        self._n_checked = 0
        # May be set, to measure others.
        self.block_rows = BLOCK_ROWS
        self._lock = threading.Lock()
        self._votes: tuple[tuple[Any, ...], LeafVotes] | None = None

    @property
    def rows_at_once(self) -> int:
        """Rows of a block."""
        by_trees = _MOST_PAIRS // len(self._forest)
        by_classes = _PROBABILITY_BYTES // (8 * self._forest.n_classes)
        return max(64, min(self.block_rows, by_trees, by_classes))

    def leaves(self, X: Any) -> Iterator[tuple[slice, Tensor]]:
        """Places of leaves, a block of rows at a time."""
        for rows, block in upload_blocks(X, self.device, self.rows_at_once):
            # Another thread may replace it meanwhile, and each pads rows to its own width.
            descent = self.descent
            transformed = self.standardizer.apply(block, descent.width)
            found = descent.leaves(transformed)
            if descent.is_compiled and len(block) > 4 * self._n_checked:
                found = self._check(transformed, found)
            yield rows, found

    def _check(self, block: Tensor, leaves: Tensor) -> Tensor:
        """Return the leaves of a block if compiled kernels find them as plain torch does.

        Otherwise warn, and use plain torch from now on: it is slower, but nothing that a compiler
        does for one kind of GPU can make it wrong.
        """
        nodes = Nodes.of(self._forest)
        plain = GroupDescent(self.device, nodes, GroupArrays(self.device, nodes))
        # Kernels need rows that are padded.
        expected = plain.leaves(block[:, : plain.width])
        # Of few leaves a single one is a large share.
        if int((expected != leaves).sum()) <= max(1, _MOST_DIFFERENT * leaves.numel()):
            self._n_checked = len(block)
            return leaves
        warn_user(
            f"kernels that Triton compiled for {self.device.name} are wrong: plain torch is used",
            RuntimeWarning,
        )
        self.descent = plain
        return expected

    def nodes(self, X: Any) -> Iterator[tuple[slice, Tensor]]:
        """Numbers of leaves, counted per tree, a block of rows at a time."""
        with self.device.report_full(_ADVICE):
            for rows, leaves in self.leaves(X):
                yield rows, self._node[leaves.long()]

    def probabilities(
        self,
        X: Any,
        trees: _core.Forest,
        reading: _core.LeafReading | None,
        votes: _core.VoteWeights | None,
    ) -> Iterator[tuple[slice, Tensor]]:
        """Class probabilities, a block of rows at a time.

        ``trees`` have the same splits and may count other samples in their leaves.
        """
        with self.device.report_full(_ADVICE):
            table = self.votes(trees, reading, votes)
            for rows, leaves in self.leaves(X):
                yield rows, table.probabilities(leaves)

    def votes(
        self,
        trees: _core.Forest,
        reading: _core.LeafReading | None,
        votes: _core.VoteWeights | None,
    ) -> LeafVotes:
        """The votes of all leaves; the last ones are kept."""
        key = (trees, reading, votes)
        with self._lock:
            found = self._votes
            if found is None or any(a is not b for a, b in zip(found[0], key, strict=True)):
                # The old table goes first: both may not fit into the memory of the device.
                found = self._votes = None
                found = self._votes = (key, LeafVotes(self.device, trees, reading, votes))
            return found[1]


def _descent(device: Device, kind: str, nodes: Nodes, n_features: int) -> Descent:
    if kind == "axis":
        return ThresholdDescent(device, nodes, n_features)
    arrays = GroupArrays(device, nodes)
    if device.is_gpu:
        try:
            from evergrow.estimators.forest.device.kernels import TritonDescent
        except ImportError:
            pass
        else:
            return TritonDescent(device, nodes, arrays)
    return GroupDescent(device, nodes, arrays)


# As in cpp/samples/standardizer.cpp.
_LIMIT = 1e15
_LENGTH_POWER = 0.1


class DeviceStandardizer:
    """Centre, scale and whiten rows, and bring them to nearly equal length."""

    def __init__(
        self,
        device: Device,
        mean: npt.NDArray[np.float64],
        scale: npt.NDArray[np.float64],
        whitening: npt.NDArray[np.float32] | None,
        length_features: npt.NDArray[np.uint8] | None,
    ) -> None:
        double = import_torch().float64
        self._mean, self._scale = device.tensor(mean), device.tensor(scale)
        self._whitening = None
        if whitening is not None:
            # In double precision, which no setting of torch for matrix products affects.
            self._whitening = device.tensor(np.tril(whitening).T, double)
        self._counts = None if length_features is None else device.tensor(length_features, double)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self._mean)

    def apply(self, rows: Tensor, width: int) -> Tensor:
        """Transform rows of any type to single precision, padded with zeros to a width."""
        torch = import_torch()
        out = torch.zeros((len(rows), width), dtype=torch.float32, device=rows.device)
        found = _clip((rows.double() - self._mean).mul_(self._scale))
        if self._whitening is not None:
            found = _clip(found.float().double() @ self._whitening)
        if self._counts is not None:
            found = _clip(self._equalise(found.float().double()))
        out[:, : self.n_features] = found
        return out

    def _equalise(self, rows: Tensor) -> Tensor:
        square = (rows * rows) @ self._counts
        # A row without length, the centre, stays.
        ratio = (self.n_features / square).where(square > 0, 1.0)
        return rows * (ratio ** ((1 - _LENGTH_POWER) / 2))[:, None]


def _clip(values: Any) -> Any:
    return values.clamp_(-_LIMIT, _LIMIT)
