"""The NCM forest of Ristin, Guillaumin, Gall and Van Gool (CVPR 2014) as an estimator."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Literal

import numpy as np

from evergrow.estimators.forest.learner import ForestLearner
from evergrow.estimators.forest.splits import (
    FOREST_RULES,
    NCM_RULES,
    assignments_per_subset,
    centroids_per_node,
    largest_subset,
    scoring_samples,
    subsets_per_node,
)
from evergrow.estimators.forest.strategies import NodeSampling, Strategy
from evergrow.foundation.params import Rule


class NCMForestClassifier(ForestLearner):
    """A random forest whose nodes send a sample to the side of the nearest class mean.

    Each splitting node compares a sample with the means of a few random classes and sends it
    left or right with the nearest one. On image features this is more accurate than a forest of
    axis-aligned thresholds and an order of magnitude faster to train, and a class is known by its
    mean alone, which is what lets such a forest grow new classes.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees. More are more accurate, with less and less to gain.
    n_centroids : {"sqrt", "log2"}, float or int, default="sqrt"
        Classes whose means a node compares with: the square root or binary logarithm of the
        number of classes, a fraction of it, or a fixed number. More means are slower and a
        little more accurate.
    n_assignments : "auto" or int, default="auto"
        Ways of sending the means left or right that a node tries, of every subset of the classes.
        All ways are tried when there are no more than this. ``"auto"`` is 1024 for one subset and
        50 for each of several. More are slower and hardly ever more accurate.
    n_subsets : int, default=1
        Random subsets of the classes that a node tries. With one it compares with the means of as
        many classes as `n_centroids` says. With more the forest is a regularised one: subsets have
        2 to that many classes and the node takes the one that separates best for its size. With a
        hundred classes, 100 make a more accurate forest that predicts with a fifth fewer distances
        and trains three to four times as long. Never more than a hundredth of all subsets are
        tried, so that the trees of a forest with few classes are not all the same; up to nine
        classes that is one, and the forest the plain one.
    subset_scale : float, default=1.0
        With several subsets, makes the largest this many times `n_centroids`. 3.0 gains a little
        accuracy for nearly twice the distances; features of very many dimensions gain from 10.0.
    cost_weight : float, default=0.001
        With several subsets, the information, in nats, that each further mean must bring. Larger
        values make smaller subsets: faster prediction, at some point less accurate.
    max_scoring_samples : "auto", int or None, default="auto"
        With several subsets, compare them on this many random samples of a node that has more; the
        best then splits all of them. ``"auto"`` is three for each class, at least 256: as accurate
        as all samples on CIFAR-100 and CUB features. None for all samples, which is slower and
        needs memory: two bytes per sample and subset, at most 32 MB in each thread at a time.
    min_samples_leaf : int, default=10
        Fewest training samples in a leaf. Smaller leaves make deeper, larger, slightly more
        accurate trees.
    min_gain : float, default=1e-7
        A split must gain more information than this, in nats.
    max_samples : float or int, default=None
        Share or number of the samples that each tree sees; None for all. Fewer make smaller and
        more different trees.
    bootstrap : bool, default=False
        Draw the samples of each tree with replacement.
    standardize : bool, default=True
        Centre each feature and divide it by its standard deviation, as measured on the first
        data. Switch it off for features that already share a scale that matters, such as pixels:
        they are then centred and divided by one common number, which changes nothing but rounding.
    update : {"rust", "rtst", "igt", "uls"} or strategy, default="rust"
        How :meth:`partial_fit` takes new samples: ``"uls"`` counts them in the leaves they reach,
        ``"igt"`` also lets these leaves grow, ``"rust"`` also gives chosen nodes the means of new
        classes, ``"rtst"`` grows chosen subtrees again. Each is more accurate and slower than the
        one before. A value such as ``RTST(share=0.5)`` carries its own options. May change
        between updates.
    update_fraction : float, default=0.8
        Share of the splitting nodes that ``"rust"`` and ``"rtst"`` choose per update.
    node_sampling : {"size", "uniform", "quality"}, default="size"
        What makes a node likely to be chosen: a small subtree, nothing, or a subtree that sorts
        its samples badly.
    refresh : float, default=0.0
        Share of the trees that each update grows again from scratch, in turn. 0.04 costs little
        and keeps the newest classes accurate.
    sample_dtype : {"float32", "float16"}, default="float32"
        Precision of the training samples that the forest keeps for its updates.
    memory : path, default=None
        File to keep the samples in, mapped into memory, when they are more than fit into it.
    memory_limit : str or int, default=None
        Most memory that training may use besides the trees, such as ``"4GiB"``, ``"600MiB"`` or a
        number of bytes; None for no limit. Samples beyond it lie in a temporary file (in
        ``TMPDIR``, else ``/var/tmp``); large nodes read them there, small subtrees are grown in
        memory. The forest is the same, and takes up to twice as long.
    keep_per_class : int, default=None
        Keep at most this many samples of a class, a uniform choice of those seen; None for all.
        Class counts in the leaves still count every sample.
    n_jobs : int, default=None
        Threads, as in scikit-learn: None is 1, -1 all processors. The forest does not depend
        on it.
    random_state : int, RandomState or None, default=None
        Seed. The same seed gives the same forest.
    verbose : int, default=0
        Show a progress bar when positive.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.
    sample_ids_ : ndarray of shape (n_samples,)
        Ids of the samples of the last :meth:`fit` or :meth:`partial_fit`.
    stored_ids_ : ndarray
        Ids of all samples that the forest keeps.
    update_report_ : UpdateReport
        What the last call that trained or forgot did.

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
    _strategies: ClassVar[tuple[str, ...]] = ("uls", "igt", "rtst", "rust")
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
        min_samples_leaf: int = 10,
        min_gain: float = 1e-7,
        max_samples: float | int | None = None,
        bootstrap: bool = False,
        standardize: bool = True,
        update: str | Strategy = "rust",
        update_fraction: float = 0.8,
        node_sampling: NodeSampling = "size",
        refresh: float = 0.0,
        sample_dtype: Literal["float32", "float16"] = "float32",
        memory: str | os.PathLike[str] | None = None,
        memory_limit: str | int | None = None,
        keep_per_class: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_estimators,
            min_samples_leaf=min_samples_leaf,
            min_gain=min_gain,
            max_samples=max_samples,
            bootstrap=bootstrap,
            standardize=standardize,
            update=update,
            update_fraction=update_fraction,
            node_sampling=node_sampling,
            refresh=refresh,
            sample_dtype=sample_dtype,
            memory=memory,
            memory_limit=memory_limit,
            keep_per_class=keep_per_class,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.n_centroids = n_centroids
        self.n_assignments = n_assignments
        self.n_subsets = n_subsets
        self.subset_scale = subset_scale
        self.cost_weight = cost_weight
        self.max_scoring_samples = max_scoring_samples

    def _split_rules(self, n_classes: int, n_features: int) -> dict[str, Any]:  # noqa: ARG002
        largest = largest_subset(self.n_centroids, self.subset_scale, n_classes)
        n_subsets = subsets_per_node(self.n_subsets, largest, n_classes)
        rules = {
            "proposer": self._proposer,
            "n_centroids": centroids_per_node(self.n_centroids, n_classes),
            "n_candidates": assignments_per_subset(self.n_assignments, n_subsets),
            "min_samples_leaf": self.min_samples_leaf,
            "min_gain": self.min_gain,
            "regularization": 0.0,
        }
        if n_subsets == 1:
            return rules
        # Nodes of both kinds of forest are the same; only how their splits are found differs.
        return rules | {
            "proposer": "regularised",
            "n_centroids": largest,
            "n_subsets": n_subsets,
            "cost_weight": self.cost_weight,
            "max_scoring_samples": scoring_samples(self.max_scoring_samples, n_classes),
        }
