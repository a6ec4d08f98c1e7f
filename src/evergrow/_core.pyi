# The compiled core of Evergrow; use it through the public classes.

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

# Rows are C-ordered float32 or float64 matrices.
_Rows: TypeAlias = npt.NDArray[Any]

class Standardizer:
    # Of the whitening matrix only the lower triangle is read.
    def __init__(
        self,
        mean: npt.NDArray[np.float64],
        scale: npt.NDArray[np.float64],
        whitening: npt.NDArray[np.float32] | None = None,
        length_features: npt.NDArray[np.uint8] | None = None,
    ) -> None: ...

class Samples:
    def __init__(self, n_features: int, half: bool = False) -> None: ...
    # Samples whose rows lie in an array as standardize_rows makes them, at a multiple of 64 bytes.
    # Nothing is copied and the array is kept; it must not change. Class -1 stands for a removed
    # row.
    @staticmethod
    def over(
        rows: npt.NDArray[Any],
        classes: npt.NDArray[np.int32],
        ids: npt.NDArray[np.int64],
        *,
        n_features: int,
        weights: npt.NDArray[np.float32] | None = None,
    ) -> Samples: ...
    def __len__(self) -> int: ...
    @property
    def half(self) -> bool: ...
    @property
    def n_features(self) -> int: ...
    # Whether new rows lie in an unlinked, memory-mapped file.
    @property
    def in_file(self) -> bool: ...
    # Moves all rows to a new file in this folder.
    def move_to_file(self, folder: str) -> None: ...
    @property
    def n_removed(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def classes(self) -> npt.NDArray[np.int32]: ...
    @property
    def ids(self) -> npt.NDArray[np.int64]: ...
    # Of stored rows: how many each class has, the numbers of rows by class and place in the order
    # of the ids, and the sums of classes.
    def class_sizes(self, n_classes: int) -> npt.NDArray[np.int64]: ...
    def rows_at(
        self, classes: npt.NDArray[np.int32], places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int32]: ...
    def class_sums(self, classes: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]: ...
    def copy(self) -> Samples: ...
    def add(self, n: int) -> npt.NDArray[np.int32]: ...
    def write(
        self,
        numbers: npt.NDArray[np.int32],
        rows: _Rows,
        classes: npt.NDArray[np.int32],
        ids: npt.NDArray[np.int64],
        standardizer: Standardizer,
        n_threads: int = 1,
    ) -> None: ...
    def remove(self, numbers: npt.NDArray[np.int32]) -> None: ...
    def rename_classes(self, columns: Sequence[int]) -> None: ...
    def set_classes(
        self, numbers: npt.NDArray[np.int32], classes: npt.NDArray[np.int32]
    ) -> None: ...
    # How many copies of a row a tree draws on average, 1 unless set; None if all are 1.
    def set_weights(
        self, numbers: npt.NDArray[np.int32], weights: npt.NDArray[np.float32]
    ) -> None: ...
    @property
    def weights(self) -> npt.NDArray[np.float32] | None: ...
    # Rows without padding: float32, or the bits of float16.
    def take(self, numbers: npt.NDArray[np.int32]) -> npt.NDArray[Any]: ...

# How leaves are read where classes are coarse or fine.
class LeafReading:
    def __init__(self, parents: Sequence[int], name: str, smoothing: float) -> None: ...

# How much votes count: trees that were grown before a class came have the weight `older` for it,
# and their votes are multiplied by `gain`, because they vote for it too seldom.
class VoteWeights:
    def __init__(
        self, tree_grown: Sequence[int], class_came: Sequence[int], older: float, gain: float = 1.0
    ) -> None: ...
    # By class, the weights of all trees added up.
    @property
    def sums(self) -> list[float]: ...

# How nodes are split; those that a proposer does not use have defaults. Can be pickled.
class SplitRules:
    def __init__(
        self,
        *,
        proposer: str,
        n_centroids: int,
        n_candidates: int,
        min_samples_leaf: int,
        min_gain: float,
        regularization: float = 0.0,
        n_subsets: int = 1,
        cost_weight: float = 0.0,
        max_scoring_samples: int = 0,
        objective: str = "gain",
        coarse_weight: float = 0.0,
        coarse_means: bool = False,
        parents: Sequence[int] = (),
    ) -> None: ...
    @property
    def proposer(self) -> str: ...
    @property
    def n_centroids(self) -> int: ...
    @property
    def n_candidates(self) -> int: ...
    @property
    def n_subsets(self) -> int: ...
    @property
    def max_scoring_samples(self) -> int: ...
    def as_dict(self) -> dict[str, Any]: ...

# One update. Can be pickled.
class UpdatePlan:
    def __init__(
        self,
        *,
        n_classes: int,
        seed: int,
        update: int,
        strategy: str,
        share: float,
        node_sampling: str,
        row_rate: float,
        bootstrap: bool,
        rules: SplitRules,
        keep_rows: bool,
        leaves_only: bool = False,
        first_refreshed: int = 0,
        n_refreshed: int = 0,
        class_weights: Sequence[float] = (),
    ) -> None: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def n_refreshed(self) -> int: ...
    def as_dict(self) -> dict[str, Any]: ...

# Counts and times of an update, summed over trees.
class UpdateReport:
    def __init__(
        self,
        *,
        n_chosen: int = 0,
        n_edited: int = 0,
        n_cut: int = 0,
        n_grown: int = 0,
        n_added: int = 0,
        n_rerouted: int = 0,
        n_comparisons: int = 0,
        pass_seconds: float = 0.0,
        grow_seconds: float = 0.0,
        pack_seconds: float = 0.0,
    ) -> None: ...
    def as_dict(self) -> dict[str, Any]: ...

class Forest:
    # Trees first_tree, first_tree + 1, ... of the forest of this seed. The weights of samples are
    # multiplied by those of their classes, if there are any.
    @staticmethod
    def grow(
        *,
        samples: Samples,
        n_trees: int,
        n_classes: int,
        seed: int,
        rows_per_tree: int,
        bootstrap: bool,
        rules: SplitRules,
        n_threads: int,
        progress: Callable[[int], None] | None,
        first_tree: int = 0,
        packs_trees: bool = True,
        class_weights: Sequence[float] = (),
    ) -> Forest: ...
    # The trees of several forests as one; `samples` hold the rows of all.
    @staticmethod
    def joined(samples: Samples, forests: Sequence[Forest]) -> Forest: ...
    @staticmethod
    def from_arrays(
        *,
        samples: Samples,
        trees: Sequence[dict[str, npt.NDArray[Any]]],
        n_comparisons: Sequence[int],
        proposer: str,
        n_classes: int,
    ) -> Forest: ...
    def __len__(self) -> int: ...
    @property
    def samples(self) -> Samples: ...
    @property
    def n_classes(self) -> int: ...
    # How nodes split: "ncm", "linear" or "axis".
    @property
    def kind(self) -> str: ...
    @property
    def keeps_rows(self) -> bool: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def n_comparisons(self) -> list[int]: ...
    def update(
        self,
        *,
        samples: Samples,
        rows: npt.NDArray[np.int32],
        evicted: npt.NDArray[np.int32],
        plan: UpdatePlan,
        n_threads: int,
        progress: Callable[[int], None] | None,
    ) -> tuple[Forest, UpdateReport]: ...
    def forget(
        self,
        *,
        rows: npt.NDArray[np.int32],
        classes: Sequence[int],
        plan: UpdatePlan,
        n_threads: int,
        progress: Callable[[int], None] | None,
    ) -> tuple[Forest, UpdateReport]: ...
    # Some rows have other classes in `samples` than in the forest.
    def refine(
        self,
        *,
        samples: Samples,
        rows: npt.NDArray[np.int32],
        share: float,
        plan: UpdatePlan,
        n_threads: int,
        progress: Callable[[int], None] | None,
    ) -> tuple[Forest, UpdateReport]: ...
    def relabel(self, *, samples: Samples, columns: Sequence[int], n_classes: int) -> Forest: ...
    # All rows in a file in this folder, or in memory if it is None.
    def compact(self, folder: str | None = None) -> Forest: ...
    def with_samples(self, samples: Samples) -> Forest: ...
    # Raises RuntimeError if an invariant of a tree is broken.
    def check(self) -> None: ...
    # With keep_numbers the nodes of an edited tree have the numbers that apply returns, and dead
    # entries stay in the arrays.
    def tree_arrays(self, tree: int, keep_numbers: bool = False) -> dict[str, npt.NDArray[Any]]: ...
    # What the leaves of a tree vote, from left to right: their nodes, where the votes of each begin
    # and the last ends, classes, and weighted shares.
    def leaf_votes(
        self, tree: int, reading: LeafReading | None = None, votes: VoteWeights | None = None
    ) -> tuple[
        npt.NDArray[np.int32],
        npt.NDArray[np.int64],
        npt.NDArray[np.int32],
        npt.NDArray[np.float64],
    ]: ...
    def trace(
        self, tree: int, x: npt.NDArray[np.float64], standardizer: Standardizer
    ) -> tuple[
        list[tuple[int, bool, int, float, list[tuple[int, int]]]], int, list[tuple[int, int]]
    ]: ...
    def centroid(self, tree: int, node: int, j: int) -> npt.NDArray[np.float32]: ...
    def predict_proba(
        self,
        rows: _Rows,
        standardizer: Standardizer,
        n_threads: int,
        reading: LeafReading | None = None,
        votes: VoteWeights | None = None,
    ) -> npt.NDArray[np.float64]: ...
    def apply(
        self, rows: _Rows, standardizer: Standardizer, n_threads: int
    ) -> npt.NDArray[np.int32]: ...
    def comparisons(
        self, rows: _Rows, standardizer: Standardizer, n_threads: int
    ) -> npt.NDArray[np.uint64]: ...

# Floats in a row of so many features: the rest is zero.
def padded_width(n_features: int) -> int: ...

# Rows as samples hold them: float32, or the bits of float16, of the padded width.
def standardize_rows(
    rows: _Rows,
    standardizer: Standardizer,
    out: npt.NDArray[np.float32] | npt.NDArray[np.uint16],
    n_threads: int = 1,
) -> None: ...
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

# Brings an upper Cholesky factor up to date in place with rows that enter (1) or leave (-1), at
# most 8; gives the inverse of the new matrix times each row, or None if it is not definite.
def update_factor(
    factor: npt.NDArray[np.float64],
    rows: npt.NDArray[np.float64],
    signs: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64] | None: ...

# Weights after the rows, one row per class, into `result`; gives the errors of the old weights, by
# class and row.
def update_weights(
    weights: npt.NDArray[np.float64],
    rows: npt.NDArray[np.float64],
    signs: npt.NDArray[np.float64],
    gains: npt.NDArray[np.float64],
    codes: npt.NDArray[np.int32],
    targets: npt.NDArray[np.float64],
    result: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]: ...

# Adds examples to sums in place, as features; `gemm` and `syrk` are addresses of BLAS functions.
# Returns False if an input is larger than `largest`.
def add_examples(
    gemm: int,
    syrk: int,
    rows: npt.NDArray[np.float32] | npt.NDArray[np.float64],
    codes: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64] | None,
    n_copied: int,
    kind: str,
    directions: npt.NDArray[np.float64],
    n_random: int,
    constant: bool,
    shift: npt.NDArray[np.float64] | None,
    largest: float,
    gram: npt.NDArray[np.float64] | None,
    class_sums: npt.NDArray[np.float64],
    class_squares: npt.NDArray[np.float64],
    n_threads: int,
    progress: Callable[[int], None] | None,
) -> bool: ...
def random_projection(
    seed: int, n_rows: int, n_columns: int, n_threads: int = 1
) -> npt.NDArray[np.float64]: ...

# Trees of thresholds whose leaves are visual words; they never change. The arrays of a tree have an
# entry per node: feature, threshold, child (the left one, 0 for a leaf), word (-1 for no leaf).
class WordTrees:
    @staticmethod
    def stumps(n_trees: int, n_features: int) -> WordTrees: ...
    @staticmethod
    def from_arrays(trees: Sequence[dict[str, npt.NDArray[Any]]], n_features: int) -> WordTrees: ...
    @property
    def arrays(self) -> list[dict[str, npt.NDArray[Any]]]: ...
    @property
    def n_features(self) -> int: ...
    @property
    def words_per_tree(self) -> list[int]: ...
    # The trees after rows from `first_new` on; those before were learnt already.
    def grown(
        self,
        rows: npt.NDArray[np.float32],
        classes: npt.NDArray[np.int32],
        first_new: int,
        rules: dict[str, Any],
        seed: int,
        update: int,
        n_threads: int,
        progress: Callable[[int], None] | None = None,
    ) -> WordTrees: ...
    def code(self, rows: npt.NDArray[np.float32], n_threads: int) -> npt.NDArray[np.int32]: ...

# Descriptors of the patches (x, y, size) of an image of shape (height, width, 3): 768 values each
# under the name "rgb", "hsl" or "haar".
def describe_patches(
    image: npt.NDArray[np.uint8], boxes: npt.NDArray[np.int32], descriptor: str
) -> npt.NDArray[np.float32]: ...
