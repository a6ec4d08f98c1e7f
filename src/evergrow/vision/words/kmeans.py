"""Words as the nearest of many centres."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.cluster import MiniBatchKMeans

from evergrow.foundation.params import Choice, Integer, Nothing, RandomState, Rule
from evergrow.storage.modelfile import check_array
from evergrow.vision.words.estimator import Codebook
from evergrow.vision.words.nearest import check_magnitude, check_stored_magnitude, nearest

__all__ = ["FittedCentres", "KMeansCodebook"]

Rows = npt.NDArray[np.float32]

# Descriptors among which the first centres are chosen: more take longer than all the rest, for
# centres that are no better.
_START_PER_WORD = 3
_LEAST_START = 3000


@dataclass(frozen=True, eq=False)
class FittedCentres:
    """Centres, one per word."""

    centres: Rows

    def __post_init__(self) -> None:
        """Close the centres to changes: codebooks hand them out."""
        self.centres.setflags(write=False)

    @property
    def n_features(self) -> int:
        """Number of features of the descriptors."""
        return int(self.centres.shape[1])

    @property
    def words_per_tree(self) -> npt.NDArray[np.int64]:
        """Number of words, as of one tree."""
        return np.array([len(self.centres)])

    def words_of(self, rows: Rows, n_threads: int) -> npt.NDArray[np.int32]:  # noqa: ARG002
        """The nearest centre of each row, as one column."""
        check_magnitude(rows)
        return nearest(rows, self.centres)[:, None]

    def to_tensors(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of a model file."""
        return {"centres": self.centres}


class KMeansCodebook(Codebook):
    """Words as the nearest of many k-means centres.

    The usual way to make visual words, and the slow one: each descriptor is compared with every
    centre. Learning goes by mini-batches.

    Parameters
    ----------
    n_words : int, default=1000
        Number of centres. More tell finer differences apart and cost more, in time and in the
        length of an image's vector. There are fewer if there are fewer different descriptors.
    start : {"k-means++", "random"}, default="k-means++"
        The first centres. ``"k-means++"`` spreads them out, in a time that grows with the square of
        their number; with thousands of words take ``"random"``, random descriptors, which is there
        at once.
    batch_size : int, default=4096
        Descriptors per step. Larger ones give steadier centres for more time per step.
    max_epochs : int, default=100
        Most passes through the descriptors.
    max_no_improvement : int, default=10
        Steps in a row without gain after which learning stops. Raise it for centres that are a
        little better.
    n_init : int, default=1
        Number of starting points tried on a part of the descriptors; the best is used. With many
        words one is as good as several.
    random_state : int, RandomState or None, default=None
        Seed of the starting centres and of the mini-batches.

    Attributes
    ----------
    centres_ : ndarray of shape (``n_words_``, n_features), float32
        The centre of each word.
    words_per_tree_ : ndarray of shape (1,)
        Number of words.
    n_words_ : int
        Number of words.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import KMeansCodebook
    >>> descriptors = np.random.default_rng(0).normal(size=(500, 8))
    >>> codebook = KMeansCodebook(20, random_state=0).fit(descriptors)
    >>> codebook.transform(descriptors).shape, codebook.n_words_
    ((500, 1), 20)
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n_words": [Integer(1, 1 << 24)],
        "start": [Choice(("k-means++", "random"))],
        "batch_size": [Integer(1, 1 << 28)],
        "max_epochs": [Integer(1, 1 << 30)],
        "max_no_improvement": [Integer(1, 1 << 30)],
        "n_init": [Integer(1, 1 << 20)],
        "random_state": [Nothing(), RandomState()],
    }

    _fitted: FittedCentres

    def __init__(
        self,
        n_words: int = 1000,
        *,
        start: Literal["k-means++", "random"] = "k-means++",
        batch_size: int = 4096,
        max_epochs: int = 100,
        max_no_improvement: int = 10,
        n_init: int = 1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_words = n_words
        self.start = start
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.max_no_improvement = max_no_improvement
        self.n_init = n_init
        self.random_state = random_state

    @property
    def centres_(self) -> Rows:
        """The centre of each word."""
        self._check_is_learnt()
        return self._fitted.centres

    def _learn(self, rows: Rows, random: np.random.RandomState) -> FittedCentres:
        check_magnitude(rows)
        distinct = np.unique(rows, axis=0)
        if len(distinct) <= self.n_words:
            return FittedCentres(distinct)
        found = MiniBatchKMeans(
            self.n_words,
            init=self.start,
            batch_size=int(self.batch_size),
            max_iter=int(self.max_epochs),
            max_no_improvement=int(self.max_no_improvement),
            n_init=int(self.n_init),
            init_size=max(_LEAST_START, _START_PER_WORD * int(self.n_words)),
            random_state=random,
        ).fit(rows)
        centres = found.cluster_centers_.astype(np.float32)
        # Centres that became one, or that no descriptor is nearest to, would be wasted words.
        used = centres[np.unique(nearest(rows, centres))]
        return FittedCentres(_filled(used, distinct, int(self.n_words), random))

    @staticmethod
    def _read(tensors: dict[str, npt.NDArray[Any]]) -> FittedCentres:
        centres = check_array(tensors.get("centres"), "centres", np.float32, (None, None))
        check_stored_magnitude(centres)
        return FittedCentres(centres)


def _filled(centres: Rows, distinct: Rows, wanted: int, random: np.random.RandomState) -> Rows:
    """Descriptors drawn at random in the place of centres that are missing."""
    known = {centre.tobytes() for centre in centres}
    drawn = (distinct[k] for k in random.permutation(len(distinct)))
    spare = (row for row in drawn if row.tobytes() not in known)
    return np.stack([*centres, *islice(spare, wanted - len(centres))])
