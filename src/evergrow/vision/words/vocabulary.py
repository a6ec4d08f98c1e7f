"""What all codebooks have in common: words are counted per image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from evergrow.foundation.ragged import RaggedArray
from evergrow.storage.shards import ShardImages, ShardLabels, Shards, StoredRows
from evergrow.vision.words.counting import count_words

__all__ = ["Vocabulary", "as_images", "as_rows", "is_ragged"]


def is_ragged(D: Any) -> bool:
    """Whether descriptors come image by image, rather than as one matrix."""
    if isinstance(D, (RaggedArray, ShardImages)):
        return True
    if isinstance(D, StoredRows):
        return isinstance(D, Shards) and D.offsets is not None
    listed = isinstance(D, (list, tuple))
    if isinstance(D, np.ndarray):
        listed = D.ndim == 1 and D.dtype == object
    if not listed or not len(D):
        return False
    first = D[0]
    if hasattr(first, "ndim"):
        return bool(first.ndim == 2)
    # A list of lists of numbers is one matrix.
    nested = isinstance(first, (list, tuple)) and len(first) > 0
    return nested and (isinstance(first[0], (list, tuple)) or getattr(first[0], "ndim", 0) == 1)


def as_images(D: Any) -> RaggedArray | ShardImages:
    """Descriptors image by image; those on disk stay there."""
    if isinstance(D, Shards):
        return D.images
    return D if isinstance(D, ShardImages) else RaggedArray.of(D)


def as_rows(D: Any, y: npt.ArrayLike | None = None) -> tuple[Any, Any]:
    """One matrix of descriptors, and the label of each row.

    Of images with descriptors each, ``y`` holds a label per image, which is that of all its rows. A
    matrix and its labels come back as they are.

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
    return images.values, None if y is None else _per_row(images, y)


def _per_row(images: RaggedArray | ShardImages, y: Any) -> Any:
    if isinstance(images, RaggedArray):
        return images.per_row(y)
    if len(y) != len(images):
        raise ValueError(f"there are {len(images)} images, got {len(y)} values")
    if isinstance(y, ShardLabels):
        return ShardLabels(np.repeat(y.codes, images.lengths), y.classes)
    return np.repeat(np.asarray(y), images.lengths)


class Vocabulary(ClassNamePrefixFeaturesOutMixin):  # type: ignore[misc]
    """A codebook: each of its trees gives every descriptor a word.

    Codebooks without trees count as one tree. A codebook has ``transform``, which gives the words
    of descriptors, one column per tree and in each tree from 0 on; ``words_per_tree_``, how many
    there are in each; and ``n_features_in_``.
    """

    words_per_tree_: npt.NDArray[np.int64]

    @property
    def n_words_(self) -> int:
        """Number of words of all trees together."""
        check_is_fitted(self)
        return int(self.words_per_tree_.sum())

    @property
    def word_columns_(self) -> npt.NDArray[np.int64]:
        """The column of each word in a histogram, the words of one tree after those of another."""
        return np.arange(self.n_words_)

    @property
    def _n_features_out(self) -> int:
        """For scikit-learn, which names the columns of ``transform`` by number."""
        return len(self.words_per_tree_)

    def encode(self, images: Iterable[npt.ArrayLike]) -> sparse.csr_array:
        """Count the words of each image.

        Parameters
        ----------
        images : RaggedArray, Shards, or iterable of arrays of shape (n_patches, n_features)
            Descriptors of each image; an image may have none. Of :class:`evergrow.Shards` a few
            images are in memory at a time.

        Returns
        -------
        counts : sparse array of shape (n_images, ``n_words_``), int32
            How often each word occurs; the words of a tree come after those of the trees before.

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

    def _travelling(self) -> Any:
        """One look at what codes, without what only learning needs."""
        return self._snapshot()
