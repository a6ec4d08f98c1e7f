"""K-means codebook: the word of a descriptor is its nearest centre."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Choice, Integer, Nothing, RandomState, Rule
from evergrow.storage.models.codec import Array, Fields
from evergrow.vision.words.codebooks.clustering import Clustering, distinct_rows, nearest
from evergrow.vision.words.codebooks.codebook import Codebook

Rows = npt.NDArray[np.float32]

# The largest value of a descriptor: sums of squares must stay finite in single precision.
MAX_VALUE = 1e15
# Size of the sample from which the initial centres are chosen: a larger one would take longer than
# all other steps and not give better centres.
_INIT_ROWS_PER_WORD = 3
_MIN_INIT_ROWS = 3000


@dataclass(frozen=True, eq=False)
class FittedCentres:
    """The centres, one per word, as one immutable value."""

    centres: Rows

    _stored: ClassVar[Fields] = {
        "centres": Array(np.float32, (None, None), -MAX_VALUE, MAX_VALUE, filled=True)
    }

    def __post_init__(self) -> None:
        """Make the centres read-only, because codebooks expose them."""
        self.centres.setflags(write=False)

    @property
    def n_features(self) -> int:
        """Number of features of the descriptors."""
        return int(self.centres.shape[1])

    @property
    def words_per_tree(self) -> npt.NDArray[np.int64]:
        """Number of words, as one tree."""
        return np.array([len(self.centres)])

    def words_of(self, rows: Rows, n_threads: int) -> Any:  # noqa: ARG002
        """The nearest centre of each row, in one column."""
        check_magnitude(rows)
        return nearest(rows, self.centres)[:, None]


@dataclass(eq=False, repr=False)
class KMeansCodebook(Codebook):
    """K-means codebook: the word of a descriptor is its nearest centre.

    The usual kind of visual words, and a slow one: each descriptor is compared with every centre.
    The centres are learnt by mini-batch k-means.

    Parameters
    ----------
    n_words : int, default=1000
        Number of centres. More centres distinguish finer differences, but take more time and make
        the vectors of images longer. There are fewer if there are fewer distinct descriptors.
    start : {"k-means++", "random"}, default="k-means++"
        The initial centres. ``"k-means++"`` spreads them out, in time quadratic in their number;
        for thousands of words use ``"random"``, which draws descriptors.
    batch_size : int, default=4096
        Descriptors per step. Larger batches give more stable centres and take more time.
    max_epochs : int, default=100
        Maximum number of passes through the descriptors.
    max_no_improvement : int, default=10
        Number of consecutive steps without improvement after which learning stops. A larger number
        gives slightly better centres.
    n_init : int, default=1
        Number of initialisations, of which the best on a sample is used. With many words one is
        enough.
    random_state : int, RandomState or None, default=None
        Seed of the initial centres and of the mini-batches.

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

    _fitted: FittedCentres = field(init=False)
    _kind = FittedCentres

    n_words: int = 1000
    _: KW_ONLY
    start: Literal["k-means++", "random"] = "k-means++"
    batch_size: int = 4096
    max_epochs: int = 100
    max_no_improvement: int = 10
    n_init: int = 1
    random_state: int | np.random.RandomState | None = None

    @property
    def centres_(self) -> Rows:
        """The centre of each word."""
        return cast("FittedCentres", self._require_fitted()).centres

    def _learn(self, rows: Rows, random: np.random.RandomState) -> FittedCentres:
        check_magnitude(rows)
        distinct = distinct_rows(rows)
        if len(distinct) <= self.n_words:
            return FittedCentres(distinct)
        clustering = Clustering(
            int(self.n_words),
            self.start,
            batch_size=int(self.batch_size),
            max_epochs=int(self.max_epochs),
            max_no_improvement=int(self.max_no_improvement),
            n_init=int(self.n_init),
            init_size=max(_MIN_INIT_ROWS, _INIT_ROWS_PER_WORD * int(self.n_words)),
        )
        found = clustering.find_centres(rows, random)
        # Equal centres, and centres that are nearest to no descriptor, would be wasted words.
        used = found[np.unique(nearest(rows, found))]
        return FittedCentres(_fill_up(used, distinct, int(self.n_words), random))


def _fill_up(centres: Rows, distinct: Rows, wanted: int, random: np.random.RandomState) -> Rows:
    """Replace missing centres by random descriptors."""
    known = {centre.tobytes() for centre in centres}
    drawn = (distinct[k] for k in random.permutation(len(distinct)))
    spare = (row for row in drawn if row.tobytes() not in known)
    return np.stack([*centres, *islice(spare, wanted - len(centres))])


def check_magnitude(rows: Rows) -> None:
    """Raise a ``ValueError`` for descriptors whose distances would overflow."""
    if len(rows) and max(rows.max(), -rows.min()) > MAX_VALUE:
        raise InvalidInputError(
            "Input contains values too large for distances in single precision, above "
            f"{MAX_VALUE:g}."
        )
