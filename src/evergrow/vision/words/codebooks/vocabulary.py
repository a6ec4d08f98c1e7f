"""The interface of all codebooks, and the forms in which they accept descriptors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.ragged import RaggedArray
from evergrow.storage.shards import ShardImages, ShardLabels, Shards, StoredRows
from evergrow.vision.words.codebooks.counts import count_words


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


class Vocabulary(ClassNamePrefixFeaturesOutMixin):  # type: ignore[misc]
    """The interface of a codebook: each of its trees assigns a word to every descriptor.

    A codebook without trees counts as one tree. A codebook has ``transform``, which returns the
    words of descriptors, numbered from 0 in each tree, with one column per tree;
    ``words_per_tree_``, the number of words of each tree; and ``n_features_in_``.
    """

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

    def encode(self, images: Iterable[npt.ArrayLike]) -> sparse.csr_array:
        """Count the words of each image.

        Parameters
        ----------
        images : RaggedArray, Shards, or iterable of arrays of shape (n_patches, n_features)
            Descriptors of each image; an image may have none. Of :class:`evergrow.Shards`, only a
            few images are in memory at the same time.

        Returns
        -------
        counts : sparse array of shape (n_images, ``n_words_``), int32
            How often each word occurs; columns as in ``word_columns_``.

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
