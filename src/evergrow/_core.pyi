# The compiled core of Evergrow; use it through the public classes.

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

# Rows are C-ordered float32 or float64 matrices.
_Rows: TypeAlias = npt.NDArray[Any]

class Standardizer:
    def __init__(self, mean: npt.NDArray[np.float64], scale: npt.NDArray[np.float64]) -> None: ...

class Samples:
    def __init__(self, n_features: int, capacity: int) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def rows(self) -> npt.NDArray[np.float32]: ...
    @property
    def classes(self) -> npt.NDArray[np.int32]: ...
    def append(
        self, rows: _Rows, classes: npt.NDArray[np.int32], standardizer: Standardizer
    ) -> None: ...

class Forest:
    @staticmethod
    def grow(
        *,
        samples: Samples,
        n_trees: int,
        n_classes: int,
        seed: int,
        rows_per_tree: int,
        bootstrap: bool,
        n_centroids: int,
        n_assignments: int,
        min_samples_leaf: int,
        min_gain: float,
        n_threads: int,
        progress: Callable[[int], None] | None,
    ) -> Forest: ...
    @staticmethod
    def from_arrays(
        *,
        samples: Samples,
        trees: Sequence[dict[str, npt.NDArray[Any]]],
        n_comparisons: Sequence[int],
        n_classes: int,
    ) -> Forest: ...
    def __len__(self) -> int: ...
    @property
    def samples(self) -> Samples: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def n_comparisons(self) -> list[int]: ...
    def tree_arrays(self, tree: int) -> dict[str, npt.NDArray[Any]]: ...
    def trace(
        self, tree: int, x: npt.NDArray[np.float64], standardizer: Standardizer
    ) -> tuple[list[tuple[int, int, float]], int]: ...
    def centroid(self, tree: int, centroid: int) -> npt.NDArray[np.float32]: ...
    def predict_proba(
        self, rows: _Rows, standardizer: Standardizer, n_threads: int
    ) -> npt.NDArray[np.float64]: ...
    def apply(
        self, rows: _Rows, standardizer: Standardizer, n_threads: int
    ) -> npt.NDArray[np.int32]: ...
    def comparisons(
        self, rows: _Rows, standardizer: Standardizer, n_threads: int
    ) -> npt.NDArray[np.uint64]: ...

def add_sums(rows: _Rows, total: npt.NDArray[np.float64]) -> None: ...
def add_squares(
    rows: _Rows, mean: npt.NDArray[np.float64], total: npt.NDArray[np.float64]
) -> None: ...
def nearest_centroids(
    rows: npt.NDArray[np.float32],
    order: npt.NDArray[np.int32],
    centroids: npt.NDArray[np.float32],
    isa: str,
    repeat: int = 1,
) -> npt.NDArray[np.uint16]: ...
def available_kernels() -> list[str]: ...
def chosen_kernel() -> str: ...
