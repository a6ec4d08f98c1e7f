"""A forest of linear support vector machines."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Literal

import numpy as np

from evergrow.estimators.forest.learner import ForestLearner
from evergrow.estimators.forest.splits import FOREST_RULES, SVM_RULES
from evergrow.estimators.forest.strategies import NodeSampling, Strategy
from evergrow.foundation.params import Rule


class SVMForestClassifier(ForestLearner):
    """A random forest whose nodes split by a linear support vector machine.

    Each splitting node parts its classes at random into two halves, trains a linear SVM between
    them, and keeps the best of several such planes. It finds better planes than chance or class
    means do and needs fewer nodes, at many times their training time.

    The SVMs minimise the hinge loss by dual coordinate descent with the bias as a constant
    feature, on samples that each node centres and scales to the spread of standardize_all features.
    They stop when the optimality conditions hold to 0.1 or after 5 sweeps, and a node with more
    than 2000 samples trains them on 2000 drawn at random.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees. More are more accurate, with less and less to gain.
    n_candidates : int, default=20
        SVMs that a node trains, each between other halves of its classes. All halves are tried
        when there are no more than this. More are slower and more accurate.
    regularization : float, default=1.0
        The C of the SVMs: the weight of samples on the wrong side against a wide margin. Lower
        it for noisy samples or to train faster.
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
    update : {"igt", "rtst", "uls"} or strategy, default="igt"
        How :meth:`partial_fit` takes new samples: ``"uls"`` counts them in the leaves they reach,
        ``"igt"`` also lets these leaves grow, ``"rtst"`` grows chosen subtrees again. Each is more
        accurate and slower than the one before. A value such as ``RTST(share=0.5)`` carries its
        own options. May change between updates.
    update_fraction : float, default=0.8
        Share of the splitting nodes that ``"rtst"`` chooses per update.
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
    >>> from evergrow import SVMForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> forest = SVMForestClassifier(10, min_samples_leaf=1, random_state=0)
    >>> bool(forest.fit(X_train, y_train).score(X_test, y_test) > 0.96)
    True
    """

    _proposer: ClassVar[str] = "svm"
    _rules: ClassVar[dict[str, list[Rule]]] = {**FOREST_RULES, **SVM_RULES}
    # RUST moves class means, and these nodes have none.
    _strategies: ClassVar[tuple[str, ...]] = ("uls", "igt", "rtst")

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        n_candidates: int = 20,
        regularization: float = 1.0,
        min_samples_leaf: int = 10,
        min_gain: float = 1e-7,
        max_samples: float | int | None = None,
        bootstrap: bool = False,
        standardize: bool = True,
        update: str | Strategy = "igt",
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
        self.n_candidates = n_candidates
        self.regularization = regularization

    def _split_rules(self, n_classes: int, n_features: int) -> dict[str, Any]:  # noqa: ARG002
        return {
            "proposer": self._proposer,
            "n_centroids": 0,
            "n_candidates": self.n_candidates,
            "min_samples_leaf": self.min_samples_leaf,
            "min_gain": self.min_gain,
            "regularization": self.regularization,
        }
