"""The NCM forest of Ristin, Guillaumin, Gall and Van Gool (CVPR 2014)."""

from __future__ import annotations

from typing import ClassVar, Literal, Unpack

from evergrow.estimators.forest.explanation import NCMDecision
from evergrow.estimators.forest.learner import ForestLearner
from evergrow.estimators.forest.parameters import CommonParameters
from evergrow.estimators.forest.request import FOREST_RULES
from evergrow.estimators.forest.splits import NCM_RULES, ClassMeanSplits
from evergrow.estimators.forest.strategies import Strategy
from evergrow.foundation.params import Rule


class NCMForestClassifier(ForestLearner):
    """A random forest whose nodes send a sample to the side of the nearest class mean.

    Each splitting node compares a sample with the means of a few random classes and sends it
    left or right with the nearest one [Ristin2014 Eq. 6]. On image features this is more accurate
    than a forest of axis-aligned thresholds and an order of magnitude faster to train. A class is
    represented by its mean alone, which is why the forest can learn new classes.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees. More trees are more accurate, with diminishing returns.
    n_centroids : {"sqrt", "log2"}, float or int, default="sqrt"
        Classes whose means a node compares with: the square root or binary logarithm of the
        number of classes, a fraction of it, or a fixed number. More means are slower and a
        little more accurate.
    n_assignments : "auto" or int, default="auto"
        Ways of sending the means left or right that a node tries for each subset of the classes.
        If there are no more than this, all of them are tried. ``"auto"`` is 1024 for one subset
        and 50 for each of several. More are slower and hardly ever more accurate.
    n_subsets : int, default=1
        Random subsets of the classes that a node tries. With one subset, a node compares with the
        means of `n_centroids` classes. With several, the forest is regularised: subsets have 2 to
        `n_centroids` classes, and the node takes the one that separates best for its size. With a
        hundred classes, 100 subsets make a more accurate forest that predicts with a fifth fewer
        distances and trains three to four times as long. At most a hundredth of all subsets are
        tried, so that the trees of a forest with few classes are not all the same; up to nine
        classes that is one subset, as in the plain forest.
    subset_scale : float, default=1.0
        With several subsets, the size of the largest one relative to `n_centroids`. 3.0
        gains a little accuracy for nearly twice the distances; very high-dimensional features
        gain from 10.0.
    cost_weight : float, default=0.001
        With several subsets, the information, in nats, that each further mean must add. Larger
        values make smaller subsets: faster prediction, and from some point on less accurate.
    max_scoring_samples : "auto", int or None, default="auto"
        With several subsets, compare them on at most this many random samples of a node; the best
        subset then splits all samples. ``"auto"`` is three for each class, at least 256: as
        accurate as all samples on CIFAR-100 and CUB features. None for all samples, which is
        slower and needs two bytes per sample and subset, at most 32 MB in each thread at a time.
    {common parameters}

    Attributes
    ----------
    {common attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from evergrow import NCMForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> forest = NCMForestClassifier(min_samples_leaf=1, random_state=0)
    >>> bool(forest.fit(X_train, y_train).score(X_test, y_test) > 0.97)
    True
    """

    _proposer: ClassVar[str] = "ncm"
    _splits = ClassMeanSplits
    _decision = NCMDecision
    _rules: ClassVar[dict[str, list[Rule]]] = {**FOREST_RULES, **NCM_RULES}

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        n_centroids: Literal["sqrt", "log2"] | float | int = "sqrt",
        n_assignments: Literal["auto"] | int = "auto",
        n_subsets: int = 1,
        subset_scale: float = 1.0,
        cost_weight: float = 0.001,
        max_scoring_samples: Literal["auto"] | int | None = "auto",
        update: str | Strategy = "rust",
        **common: Unpack[CommonParameters],
    ) -> None:
        super().__init__(n_estimators, update=update, **common)
        self.n_centroids = n_centroids
        self.n_assignments = n_assignments
        self.n_subsets = n_subsets
        self.subset_scale = subset_scale
        self.cost_weight = cost_weight
        self.max_scoring_samples = max_scoring_samples
