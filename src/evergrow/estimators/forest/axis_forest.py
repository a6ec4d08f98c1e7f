"""A forest of random thresholds on single features."""

from __future__ import annotations

from typing import ClassVar

from evergrow.estimators.forest.candidate_forest import CandidateForest


class AxisForestClassifier(CandidateForest):
    """A random forest whose nodes compare one feature with a threshold.

    Each splitting node draws random features and random thresholds and keeps the best, as
    extremely randomised trees do. It reads one number per node, so it predicts fastest of all,
    and suits tables whose columns mean something each. On image features, where only many
    together do, class means are more accurate.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees. More are more accurate, with less and less to gain.
    n_candidates : {"sqrt", "log2"}, float or int, default="sqrt"
        Features that a node tries, each with one random threshold: the square root or binary
        logarithm of the number of features and at least ten, a fraction of it, or a fixed number.
        More make more accurate trees that are more alike. A feature that cannot split the node
        does not count; none comes twice before all have come once.
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
    >>> from evergrow import AxisForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> forest = AxisForestClassifier(min_samples_leaf=1, random_state=0)
    >>> bool(forest.fit(X_train, y_train).score(X_test, y_test) > 0.96)
    True
    """

    _proposer: ClassVar[str] = "axis"
