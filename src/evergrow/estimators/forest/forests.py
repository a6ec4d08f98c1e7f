"""Forests of class means, thresholds, hyperplanes and support vector machines."""

from __future__ import annotations

import inspect
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from evergrow.estimators.forest.explanation import AxisDecision, LinearDecision, NCMDecision
from evergrow.estimators.forest.learner import ForestLearner
from evergrow.estimators.forest.request import (
    FLAT_RULES,
    Bootstrap,
    ClassWeight,
    splits_rules,
)
from evergrow.estimators.forest.splits import (
    ClassMeans,
    Directions,
    Regularised,
    Splits,
    SVMs,
    Thresholds,
)
from evergrow.estimators.forest.storage import Storage
from evergrow.estimators.forest.strategy import Strategy, usable_strategies
from evergrow.foundation.params import Rule

Forest = TypeVar("Forest", bound=type[Any])

_N_ESTIMATORS = """\
n_estimators : int, default=50
    Number of trees. A forest of more trees is more accurate, with diminishing returns. Training
    time, prediction time and model size are proportional to the number."""

_EXAMPLE = """\
>>> from sklearn.datasets import load_digits
>>> from sklearn.model_selection import train_test_split
>>> from evergrow import FOREST
>>> X, y = load_digits(return_X_y=True)
>>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
>>> old = y_train < 8
>>> forest = FOREST(20, min_samples_leaf=1, random_state=0)
>>> forest = forest.fit(X_train[old], y_train[old])
>>> forest = forest.partial_fit(X_train[~old], y_train[~old])  # two new classes
>>> bool(forest.score(X_test, y_test) > 0.94)
True"""

_UPDATE = """\
update : {{names}} or strategy, default={update}
    How :meth:`partial_fit` adds new samples to a tree:

    - ``"uls"`` (update leaf statistics) only counts new samples in the leaves that they reach;
    - ``"igt"`` (incrementally grow tree) also splits these leaves where possible;{rust}
    - ``"rtst"`` (retrain subtree) grows some subtrees again.

    All of them also grow whole trees again, in turn, when classes or samples have become more. A
    value such as ``RTST(share=0.5)`` or ``IGT(refresh=0.0)`` sets its options; with
    ``refresh=0.0``, no tree is grown again and the list goes from the fastest to the most accurate.
    But on CIFAR-100 features, ``IGT()`` was more accurate and faster than ``RTST(refresh=0.0)``
    (:doc:`/growing_tradeoffs`). Can be changed between updates.{none}"""

_UPDATE_RUST = """
    - ``"rust"`` (reuse subtree) also adds the means of new classes to some nodes;"""

_UPDATE_NONE = """
    None is ``RUST(refresh=0.0)``, the strategy of the paper."""

_BEFORE_UPDATE = """\
min_samples_leaf : "auto" or int, default="auto"
    Smallest number of training samples in a leaf. With smaller leaves, trees are deeper, larger
    and slightly more accurate. ``"auto"`` is the number of samples of the median class, as one tree
    sees them, divided by 50, but at least 1 and at most 10. So it is 1 if classes have up to 99
    samples, and 10 if they have 500 or more. Each update computes it again.
max_samples : float, int, Bootstrap or None, default=None
    Number of samples that each tree sees: a share of all samples, a fixed number, or None for all.
    With fewer samples, trees are smaller and differ more from each other. With a value such as
    ``Bootstrap()``, samples are drawn with replacement.
class_weight : mapping, "balanced" or None, default=None
    Weight of each class. The weight of a sample is multiplied by that of its class; a class that
    is not in the mapping has weight 1. ``"balanced"`` gives all classes of a call to :meth:`fit` or
    :meth:`partial_fit` the same total weight. The weight of a class is limited to a thousand times
    the mean."""

_STANDARDIZE_MEANS = """\
standardize : {"auto", "whiten", "scale", "none"} or bool, default="auto"
    How features are scaled:

    - ``"scale"`` or True divides each feature by its standard deviation;
    - ``"whiten"`` also removes correlations between features within classes; it needs memory
      quadratic in the number of features;
    - ``"none"`` or False keeps the proportions between features, which suits pixels;
    - ``"auto"`` tries these on samples that are left out and takes the one that separates the
      classes best. If classes have few samples, it may also scale all samples to nearly the same
      length, so that distances compare directions. It usually keeps the output of
      :class:`NCMMetric` as it is, because scaling it does not separate the classes better.

    The scale is measured on the data of :meth:`fit`. Unless `update` has a number as its
    ``refresh``, it is measured again in updates as long as there is little data. The attributes
    ``standardize_`` and ``equal_lengths_`` say what was chosen."""

_STANDARDIZE_OTHERS = """\
standardize : {"auto", "scale", "none", "whiten"} or bool, default="auto"
    How features are scaled:

    - ``"auto"``, ``"scale"`` or True centres each feature and divides it by its standard deviation;
    - ``"whiten"`` also removes correlations between features within classes; splits on a single
      feature gain nothing from it;
    - ``"none"`` or False keeps the proportions between features, which suits pixels.

    The scale is measured on the data of :meth:`fit`. Unless `update` has a number as its
    ``refresh``, it is measured again in updates as long as there is little data."""

_AFTER_UPDATE = """\
storage : Storage, default=None
    How the training samples are stored for updates: how many of each class, in which precision, and
    how many bytes of them in memory. None is ``Storage()``, which stores all of them in memory.
n_jobs : int, default=None
    Number of threads, as in scikit-learn: None is 1, -1 uses all processors. The forest is the same
    for any number.
random_state : int, RandomState or None, default=None
    Seed of the random choices. The same integer gives the same forest.
verbose : int, default=0
    Show a progress bar if positive."""

_BALANCE = """\
balance : "auto" or float, default="auto"
    How much small classes are favoured, from 0 (not at all) to 1. A class is small if it has fewer
    than half as many samples as the median class. ``"auto"`` is 0.5, or 0 if `class_weight` is set.

    The votes for a small class are multiplied by a weight. Up to 20 virtual samples, drawn around
    its mean with the spread of other classes, vote for it too. For small classes this is more
    accurate than `class_weight`. The trees do not change, so `balance` can be changed at any time
    without training again.

    Use 1 to recognise a class of a handful of samples among classes of hundreds. Other classes are
    then recognised less often. On CIFAR-100 features, the accuracy over all classes was 0.1 to 0.2
    points lower after :meth:`fit` and 3 to 5 points lower after :meth:`partial_fit`
    (:doc:`/growing`). Use 0 if small classes will also be rare among the samples to predict."""

_ATTRIBUTES = """\
classes_ : ndarray of shape (n_classes,)
    The classes, in the order of the columns of :meth:`predict_proba`.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, if the training data had any.
standardize_ : {"whiten", "scale", "none"}
    How the features were scaled.
equal_lengths_ : bool
    Whether samples were scaled to nearly the same length.
sample_ids_ : ndarray of shape (n_samples,)
    Ids of the samples of the last :meth:`fit` or :meth:`partial_fit`, for :meth:`forget`. Samples
    of weight 0 have none.
stored_ids_ : ndarray of shape (n_stored,)
    Ids of all samples that the forest stores.
update_report_ : UpdateReport
    Statistics of the last call that trained or forgot."""


@dataclass(eq=False, repr=False)
class ForestParameters:
    """Parameters that all forests have."""

    n_estimators: int = 50
    _: KW_ONLY
    splits: Literal["auto"] | Splits = "auto"
    min_samples_leaf: Literal["auto"] | int = "auto"
    max_samples: float | int | Bootstrap | None = None
    class_weight: ClassWeight = None
    standardize: Literal["auto", "whiten", "scale", "none"] | bool = "auto"
    update: str | Strategy | None = "igt"
    storage: Storage | None = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0


@dataclass(eq=False, repr=False, kw_only=True)
class FlatForest(ForestParameters, ForestLearner):
    """A forest whose classes are all of one level."""

    balance: float | Literal["auto"] = "auto"


def complete_docstring(forest: Forest) -> Forest:
    """Write what all forests share into the docstring of a forest, in place of placeholders."""
    has_class_means = forest._kinds[0]._has_class_means
    names = ", ".join(
        f'"{name}"' for name in sorted(usable_strategies(has_class_means=has_class_means))
    )
    standardize = _STANDARDIZE_MEANS if has_class_means else _STANDARDIZE_OTHERS
    parameters = [_BEFORE_UPDATE, standardize, _UPDATE, _AFTER_UPDATE]
    parameters += [_BALANCE] * hasattr(forest, "balance")
    shared = {
        "{n_estimators}": _N_ESTIMATORS,
        "{common parameters}": "\n".join(parameters),
        "{common attributes}": _ATTRIBUTES,
        "{names}": names,
        "{update}": _literal(forest, "update"),
        "{rust}": _UPDATE_RUST if has_class_means else "",
        "{none}": _UPDATE_NONE if getattr(forest, "update", None) is None else "",
        "{example}": _EXAMPLE.replace("FOREST", forest.__name__),
    }
    if forest.__doc__:
        text = inspect.cleandoc(forest.__doc__)
        for placeholder, content in shared.items():
            text = text.replace(placeholder, content)
        forest.__doc__ = text
    return forest


def _literal(forest: type, parameter: str) -> str:
    """The default of a parameter as it is written in Python."""
    value = getattr(forest, parameter)
    return f'"{value}"' if isinstance(value, str) else repr(value)


@complete_docstring
@dataclass(eq=False, repr=False, kw_only=True)
class NCMForestClassifier(FlatForest):
    """A random forest whose nodes compare samples with class means; new classes can be added.

    Each splitting node stores the means of a few random classes. Each mean is assigned to the left
    or the right child, and a sample goes to the side of its nearest mean [Ristin2014 Eq. 6]. A node
    represents a class by its mean alone, so :meth:`partial_fit` can add classes to a trained forest
    at low cost. On network features of CIFAR-100, this forest was 14 points more accurate than the
    random forest of scikit-learn and took a seventeenth of its training time (:doc:`/benchmarks`).
    NCM stands for nearest class mean.

    Parameters
    ----------
    {n_estimators}
    splits : "auto", ClassMeans or Regularised, default="auto"
        How nodes find their splits. ``"auto"`` is :class:`~evergrow.estimators.ClassMeans` with its
        defaults: a node takes the means of some random classes. With
        :class:`~evergrow.estimators.Regularised`, a node chooses among many subsets of the classes,
        which needs fewer distances to predict and more time to train.
    {common parameters}

    Attributes
    ----------
    {common attributes}

    See Also
    --------
    NCMClassifier : One mean per class, without trees; faster and smaller.
    RLSClassifier : Least squares, with exact updates at constant time per example.
    SubcategoryForestClassifier : An NCM forest for coarse and fine labels.

    Notes
    -----
    The user guides explain how to choose parameters (:doc:`/getting_started`), how to add and
    forget samples and classes (:doc:`/growing`), and what updates cost
    (:doc:`/growing_tradeoffs`). :doc:`/method_ncm_forests` and :doc:`/method_growing` explain the
    algorithms.

    A forest stores its training samples, because updates grow parts of the trees from them. They
    take 4 bytes per sample and feature, with the number of features rounded up to a multiple of 16,
    and 17 bytes per sample. For 50,000 samples with 256 features, this is 52 MB; the 50 trees take
    156 MB. A :class:`~evergrow.estimators.Storage` makes the stored samples smaller or moves
    them to a file.

    References
    ----------
    [Ristin2014] M. Ristin, M. Guillaumin, J. Gall, L. Van Gool: *Incremental Learning of NCM
    Forests for Large-Scale Image Classification*, CVPR 2014. See :doc:`/papers`.

    Examples
    --------
    {example}
    """

    _kinds = (ClassMeans, Regularised)
    _decision = NCMDecision
    _rules: ClassVar[dict[str, list[Rule]]] = {"splits": splits_rules(*_kinds), **FLAT_RULES}


@complete_docstring
@dataclass(eq=False, repr=False, kw_only=True)
class AxisForestClassifier(FlatForest):
    """A random forest whose nodes compare one feature with a threshold; new classes can be added.

    Each splitting node draws random features and one random threshold for each, and keeps the best
    pair, like extremely randomised trees. A node reads a single number, so this forest is the
    fastest to predict. It suits tables in which each column has a meaning of its own. On image
    features, :class:`NCMForestClassifier` is more accurate.

    Parameters
    ----------
    {n_estimators}
    splits : "auto" or Thresholds, default="auto"
        How nodes find their splits. ``"auto"`` is :class:`~evergrow.estimators.Thresholds` with its
        defaults.
    {common parameters}

    Attributes
    ----------
    {common attributes}

    See Also
    --------
    NCMForestClassifier : Nodes compare with class means; more accurate on image features.
    LinearForestClassifier : Nodes split by random hyperplanes.
    SVMForestClassifier : Nodes split by linear support vector machines.

    Examples
    --------
    {example}
    """

    _kinds = (Thresholds,)
    _decision = AxisDecision
    _rules: ClassVar[dict[str, list[Rule]]] = {"splits": splits_rules(*_kinds), **FLAT_RULES}


@complete_docstring
@dataclass(eq=False, repr=False, kw_only=True)
class LinearForestClassifier(FlatForest):
    """A random forest whose nodes split by a random hyperplane; new classes can be added.

    Each splitting node draws random directions and one random threshold along each, and keeps the
    best pair. In a high-dimensional space, a random direction separates little: the more features,
    the more candidates are needed.

    Parameters
    ----------
    {n_estimators}
    splits : "auto" or Directions, default="auto"
        How nodes find their splits. ``"auto"`` is :class:`~evergrow.estimators.Directions` with its
        defaults.
    {common parameters}

    Attributes
    ----------
    {common attributes}

    See Also
    --------
    NCMForestClassifier : Nodes compare with class means; more accurate on image features.
    AxisForestClassifier : Nodes compare one feature with a threshold.
    SVMForestClassifier : Nodes split by linear support vector machines.

    Examples
    --------
    {example}
    """

    _kinds = (Directions,)
    _decision = LinearDecision
    _rules: ClassVar[dict[str, list[Rule]]] = {"splits": splits_rules(*_kinds), **FLAT_RULES}


@complete_docstring
@dataclass(eq=False, repr=False, kw_only=True)
class SVMForestClassifier(FlatForest):
    """A random forest whose nodes split by a linear SVM; new classes can be added.

    Each splitting node divides its classes at random into two halves and trains a linear support
    vector machine (SVM) between them. It does so several times and keeps the best hyperplane. These
    splits are better than random hyperplanes or class means, so the trees have fewer nodes, but
    training takes many times as long.

    The SVMs minimise the hinge loss by dual coordinate descent, on samples that are centred and
    scaled in each node. They stop when the optimality conditions hold to 0.1, or after 5 passes. A
    node with more than 2000 samples trains them on 2000 random ones.

    Parameters
    ----------
    {n_estimators}
    splits : "auto" or SVMs, default="auto"
        How nodes find their splits. ``"auto"`` is :class:`~evergrow.estimators.SVMs` with its
        defaults.
    {common parameters}

    Attributes
    ----------
    {common attributes}

    See Also
    --------
    NCMForestClassifier : Nodes compare with class means; much faster to train.
    LinearForestClassifier : Nodes split by random hyperplanes.

    Examples
    --------
    {example}
    """

    _kinds = (SVMs,)
    _decision = LinearDecision
    _rules: ClassVar[dict[str, list[Rule]]] = {"splits": splits_rules(*_kinds), **FLAT_RULES}
