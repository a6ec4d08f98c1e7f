"""The interface of all codebooks: the descriptors that they take, and the words they assign."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from evergrow.estimators.classifier.learner import validate_rows
from evergrow.foundation.device import place_like
from evergrow.foundation.engine import Arrays, current_engine
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.rows import float_blocks
from evergrow.storage.device_rows import DeviceRows
from evergrow.storage.ragged import RaggedArray
from evergrow.storage.shards import ShardImages, ShardLabels, Shards, StoredRows
from evergrow.storage.shards.parts import RowPart, row_parts, run_and_stack
from evergrow.vision.words.codebooks.counts import count_words

Rows = npt.NDArray[np.float32]
Words = npt.NDArray[np.int32]

_NOT_SINGLE = (
    "descriptors must not be NaN or infinite and must fit in single precision (up to 3.4e38)"
)


class Coder(Protocol):
    """Assigns words to rows; picklable, because tasks use it in other processes."""

    @property
    def words_per_tree(self) -> npt.NDArray[np.int64]:
        """Number of words of each tree."""

    def words_of(self, rows: Any, n_threads: int) -> Any:
        """Word of each row in each tree."""


def assign_words(coder: Coder, X: Any, n_threads: int) -> Any:
    """Word of each row in each tree, where the rows lie; those on disk are read block by block."""
    found = _assign_here(coder, X, n_threads)
    return place_like(found, X.tensor) if isinstance(X, DeviceRows) else found


def _assign_here(coder: Coder, X: Any, n_threads: int) -> Any:
    engine = current_engine()
    parts = [] if engine is None else row_parts(X)
    if engine is not None and len(parts) > 1:
        capacity = engine.capacity
        shared = (coder, capacity.threads_per_worker if capacity.is_remote else n_threads)
        return run_and_stack(engine, parts, assign_part, X, shared, what="coding descriptors")
    if not isinstance(X, StoredRows):
        return coder.words_of(X, n_threads)
    words = np.empty((X.shape[0], len(coder.words_per_tree)), dtype=np.int32)
    for rows, block in float_blocks(X):  # type: ignore[arg-type]
        words[rows] = coder.words_of(to_single(block), n_threads)
    return words


def assign_part(
    part: RowPart, matrix: npt.NDArray[Any] | None, coder: Coder, n_threads: int
) -> Arrays:
    """Task: the words of one part of the rows."""
    return {"rows": coder.words_of(load_single(part.read(matrix)), n_threads)}


def check_matrix(estimator: BaseEstimator, rows: Any, *, reset: bool = True) -> Any:
    """Validate descriptors as a matrix in single precision; rows on disk stay there."""
    return validate_rows(estimator, rows, reset=reset, dtype=np.float32, order="C")


def load_single(X: Any) -> Any:
    """Load descriptors into memory in single precision; those on disk are read block by block.

    A ``ValueError`` for values that are not finite, or too large.
    """
    if not isinstance(X, StoredRows):
        return to_single(X)
    rows = np.empty(X.shape, dtype=np.float32)
    for part, block in float_blocks(X):  # type: ignore[arg-type]
        rows[part] = to_single(block)
    return rows


def to_single(block: npt.NDArray[Any]) -> Rows:
    """Convert to single precision; a ``ValueError`` if values are not finite or too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.ascontiguousarray(block, dtype=np.float32)
        # A finite sum proves that all values are finite; only otherwise are they checked.
        suspect = not np.isfinite(rows.sum())
    if suspect and not np.isfinite(rows).all():
        raise InvalidInputError(_NOT_SINGLE)
    return rows


def is_ragged(D: Any) -> bool:
    """Whether descriptors are given per image rather than as one matrix."""
    if isinstance(D, (RaggedArray, ShardImages)):
        return True
    if isinstance(D, StoredRows):
        return isinstance(D, Shards) and D.offsets is not None
    is_list = isinstance(D, (list, tuple))
    if isinstance(D, np.ndarray):
        is_list = D.ndim == 1 and D.dtype == object
    if not is_list or not len(D):
        return False
    first = D[0]
    if hasattr(first, "ndim"):
        return bool(first.ndim == 2)
    # A list of lists of numbers is one matrix.
    nested = isinstance(first, (list, tuple)) and len(first) > 0
    return nested and (isinstance(first[0], (list, tuple)) or getattr(first[0], "ndim", 0) == 1)


def as_images(D: Any) -> RaggedArray | ShardImages:
    """Descriptors per image; those on disk stay there."""
    if isinstance(D, Shards):
        return D.images
    return D if isinstance(D, ShardImages) else RaggedArray.of(D)


def as_rows(D: Any, y: npt.ArrayLike | None = None) -> tuple[Any, Any]:
    """One matrix of descriptors, and the label of each row.

    If descriptors are given per image, ``y`` has one label per image, which all its rows get. A
    matrix and its labels are returned unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> rows, labels = as_rows([np.zeros((2, 3)), np.ones((1, 3))], ["cat", "dog"])
    >>> rows.shape, labels.tolist()
    ((3, 3), ['cat', 'cat', 'dog'])
    """
    if not is_ragged(D):
        return D, y
    images = as_images(D)
    return images.values, None if y is None else _label_rows(images, y)


def _label_rows(images: RaggedArray | ShardImages, y: Any) -> Any:
    if isinstance(images, RaggedArray):
        return images.per_row(y)
    if len(y) != len(images):
        raise InvalidInputError(f"there are {len(images)} images, got {len(y)} values")
    if isinstance(y, ShardLabels):
        return ShardLabels(np.repeat(y.codes, images.lengths), y.classes)
    return np.repeat(np.asarray(y), images.lengths)


class Vocabulary(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """Base class of codebooks, which assign visual words to descriptors.

    Each tree of a codebook assigns one word to every descriptor. A codebook without trees counts as
    one tree. Words are numbered from 0 in each tree. ``words_per_tree_`` is the number of words of
    each tree, ``n_features_in_`` the length of a descriptor.
    """

    _frozen_copy: Callable[[], Any]
    _coder: Callable[[], Coder]
    _checked_descriptors: Callable[[Any], Any]

    words_per_tree_: npt.NDArray[np.int64]

    @property
    def n_words_(self) -> int:
        """Number of words of all trees together."""
        check_is_fitted(self)
        return int(self.words_per_tree_.sum())

    @property
    def word_columns_(self) -> npt.NDArray[np.int64]:
        """The column of each word in a histogram, tree by tree."""
        return np.arange(self.n_words_)

    @property
    def _n_features_out(self) -> int:
        """Number of columns of ``transform``, which scikit-learn names."""
        return len(self.words_per_tree_)

    def transform(self, D: Any) -> Any:
        """Assign each descriptor to its words.

        Parameters
        ----------
        D : array-like of shape (n_descriptors, n_features), RaggedArray, or list of such arrays
            Descriptors, as in ``fit``.

        Returns
        -------
        words : ndarray of shape (n_descriptors, n_trees), int32
            One word per tree, from 0 to ``words_per_tree_ - 1``. A tensor on the GPU if the
            descriptors are one.

        Examples
        --------
        >>> from evergrow.vision import RandomKDTrees
        >>> trees = RandomKDTrees(2, n_words=2, random_state=0).fit([[0], [1], [2], [3]])
        >>> trees.transform([[0], [9]])
        array([[0, 0],
               [1, 1]], dtype=int32)
        """
        reader = self._frozen_copy()
        check_is_fitted(reader)
        rows = reader._checked_descriptors(as_rows(D)[0])
        n_threads = effective_n_jobs(getattr(self, "n_jobs", None))
        return assign_words(reader._coder(), rows, n_threads)

    def encode(self, images: Iterable[npt.ArrayLike]) -> sparse.csr_array:
        """Count the words of each image.

        Parameters
        ----------
        images : RaggedArray, Shards, or iterable of arrays of shape (n_patches, n_features)
            Descriptors of each image; an image may have none. :class:`evergrow.Shards` are read a
            few images at a time.

        Returns
        -------
        counts : sparse array of shape (n_images, ``n_words_``), int32
            How often each word occurs in each image. ``word_columns_`` has the column of each word.

        Examples
        --------
        >>> from evergrow.vision import KMeansCodebook
        >>> codebook = KMeansCodebook(2, random_state=0).fit([[0, 0], [0, 1], [9, 9], [9, 8]])
        >>> counts = codebook.encode([[[0, 1], [1, 0], [9, 9]], [[8, 8]]])
        >>> sorted(counts.toarray()[0].tolist()), int(counts.sum())
        ([1, 2], 4)
        """
        check_is_fitted(self)
        return count_words(self, images.images if isinstance(images, Shards) else images)

    def _coding_copy(self) -> Any:
        """A copy that later training does not affect, without what only training needs."""
        return self._frozen_copy()
