"""Parameters that all forests have: their defaults, and their part of the docstrings."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeVar

import numpy as np

from evergrow.estimators.forest.request import ClassWeight
from evergrow.estimators.forest.strategy import NodeSampling, Strategy

Forest = TypeVar("Forest", bound=type)

_N_ESTIMATORS = """\
n_estimators : int, default=50
    Number of trees. More trees are more accurate, with diminishing returns."""

_EXAMPLE = """\
>>> from sklearn.datasets import load_digits
>>> from sklearn.model_selection import train_test_split
>>> from evergrow import FOREST
>>> X, y = load_digits(return_X_y=True)
>>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
>>> forest = FOREST(20, min_samples_leaf=1, random_state=0)
>>> bool(forest.fit(X_train, y_train).score(X_test, y_test) > 0.96)
True"""

_UPDATE_MEANS = """\
update : {"igt", "rust", "rtst", "uls"} or strategy, default={update}
    How :meth:`partial_fit` takes new samples: ``"uls"`` counts them in the leaves they reach,
    ``"igt"`` also lets these leaves grow, ``"rust"`` also gives chosen nodes the means of new
    classes, ``"rtst"`` grows chosen subtrees again. Each is more accurate and slower than the
    one before; `refresh` adds whole trees to each. A value such as ``RTST(share=0.5)`` carries
    its own options. May change between updates.
update_fraction : float, default=0.8
    Share of the splitting nodes that ``"rust"`` and ``"rtst"`` choose per update."""

_UPDATE_OTHERS = """\
update : {"igt", "rtst", "uls"} or strategy, default={update}
    How :meth:`partial_fit` takes new samples: ``"uls"`` counts them in the leaves they reach,
    ``"igt"`` also lets these leaves grow, ``"rtst"`` grows chosen subtrees again. Each is more
    accurate and slower than the one before. A value such as ``RTST(share=0.5)`` carries its
    own options. May change between updates.
update_fraction : float, default=0.8
    Share of the splitting nodes that ``"rtst"`` chooses per update."""

_BEFORE_UPDATE = """\
min_samples_leaf : "auto" or int, default="auto"
    Fewest training samples in a leaf. Smaller leaves make deeper, larger, slightly more
    accurate trees. ``"auto"`` is a fiftieth of the number of samples of a class that a tree
    sees, the median over the classes, at least 1 and at most 10: 1 for classes of up to 99
    samples, 10 from 500 on. Every update chooses it again.
min_gain : float, default=1e-7
    A split must gain more information than this, in nats.
max_samples : float or int, default=None
    Share or number of the samples that each tree sees; None for all. Fewer samples make smaller
    trees that differ more.
bootstrap : bool, default=False
    Draw the samples of each tree with replacement.
class_weight : mapping, "balanced" or None, default=None
    Weights of classes, by which those of their samples are multiplied; classes that are not named
    have weight 1. ``"balanced"`` gives all classes the same total weight, at every call for the
    samples that it adds. No class weighs more than a thousand times the mean. `balance` is more
    accurate for classes with few samples, because copies of a sample know no more than the
    sample; its ``"auto"`` is 0 if classes are weighted."""

_STANDARDIZE_MEANS = """\
standardize : {"auto", "whiten", "scale", "none"} or bool, default="auto"
    What is done to the features, as measured on the first data, and with ``refresh="auto"`` again
    while these are few. ``"scale"`` or True divides each feature by its standard deviation.
    ``"whiten"`` also removes the correlations that features have within classes, shrunk by
    leave-one-out; it needs memory for the square of the number of features. ``"none"`` or False
    keeps their proportions, as for pixels: all are divided by one common number, which changes
    nothing but rounding. ``"auto"`` takes what tells the classes apart best: by the nearest class
    mean or the nearest neighbour of samples that are left out.
    It keeps features that a learnt metric made. Where classes have up to 20 samples of at least 32
    features, it also tries samples of nearly equal length, as for cosines. With up to five samples
    per class and too few to leave out, it takes them. :attr:`standardize_` and
    :attr:`equal_lengths_` say what was done."""

_STANDARDIZE_OTHERS = """\
standardize : {"auto", "scale", "none", "whiten"} or bool, default="auto"
    ``"scale"``, True or ``"auto"`` centres each feature and divides it by its standard deviation,
    as measured on the first data, and with ``refresh="auto"`` again while these are few.
    ``"whiten"`` also removes the correlations that features have within classes; thresholds of
    single features cannot use it. ``"none"`` or False is for features that already share a
    meaningful scale, such as pixels: they are then centred and divided by one common number, which
    changes nothing but rounding."""

_AFTER_UPDATE = """\
node_sampling : {"size", "uniform", "quality"}, default="size"
    What makes a node likely to be chosen: a small subtree, nothing, or a subtree that separates
    its samples badly.
refresh : "auto" or float, default={refresh}
    Share of the trees that each update grows again from scratch, in turn. ``"auto"`` grows a tree
    again whenever the number of classes or of samples has grown by 30 % since it was last grown,
    and one tree at least for new classes. A number is a fixed share; 0.0 grows none again, which
    is faster and less accurate.
sample_dtype : {"float32", "float16"}, default="float32"
    Precision of the training samples that the forest stores for its updates.
memory : path, default=None
    Store the samples in this file and memory-map it, for more samples than fit into memory.
memory_limit : str or int, default=None
    Most memory that training may use in addition to the trees, such as ``"4GiB"``, ``"600MiB"``
    or a number of bytes; None for no limit. Samples beyond it go to a temporary file (in
    ``TMPDIR``, else ``/var/tmp``): large nodes read them from there, small subtrees are grown in
    memory. The trees are the same; training takes up to twice as long. A small limit keeps
    ``standardize="auto"`` from whitening.
keep_per_class : int, default=None
    Store at most this many samples of a class, chosen uniformly from those seen; None for all.
    The class counts in the leaves still count every sample.
n_jobs : int, default=None
    Threads, as in scikit-learn: None is 1, -1 all processors. The forest does not depend on it.
device : {"cpu", "cuda"} or str, default=None
    Where :meth:`predict`, :meth:`predict_proba`, :meth:`predict_top_k` and :meth:`apply` compute:
    on the processor, or on a GPU (``"cuda:1"`` is the second one) through torch. None is where the
    samples lie. Training always uses the processor. May change at any time, and is not saved. See
    :doc:`/gpu`.
random_state : int, RandomState or None, default=None
    Seed. The same seed gives the same forest.
verbose : int, default=0
    Show a progress bar when positive."""

_BALANCE = """\
balance : "auto" or float, default="auto"
    How much classes are helped that have fewer than half the samples of the median class, from 0
    (not at all) to 1 (they are answered nearly as often as others). Raise it to 1 where a new class
    of a handful of samples must be found among classes of hundreds; set it to 0 where small classes
    are as rare when the forest is used. ``"auto"`` is 0.5, which lost no accuracy over all classes
    on any data set that was tried. The votes of such a class count more, and it gets up to 20
    virtual samples, which have its mean and the spread of other classes. They only vote: trees grow
    from real samples, and nothing of them is stored. They are counted when the forest is first
    asked after a change, in milliseconds. May change at any time, without training again."""

_ATTRIBUTES = """\
classes_ : ndarray of shape (n_classes,)
    The classes, in the order of the columns of :meth:`predict_proba`.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, if the training data had any.
standardize_ : {"whiten", "scale", "none"}
    What was done to the features.
equal_lengths_ : bool
    Whether samples were brought to nearly the same length.
sample_ids_ : ndarray of shape (n_samples,)
    Ids of the samples of the last :meth:`fit` or :meth:`partial_fit`, without those of weight 0.
stored_ids_ : ndarray
    Ids of all samples that the forest stores.
update_report_ : UpdateReport
    What the last call that trained or forgot did."""


@dataclass(eq=False, repr=False)
class ForestParameters:
    """Parameters that all forests have.

    The parameters of one kind of forest are in its last base class, so that they come first in the
    signature.
    """

    n_estimators: int = 50
    _: KW_ONLY
    min_samples_leaf: Literal["auto"] | int = "auto"
    min_gain: float = 1e-7
    max_samples: float | int | None = None
    bootstrap: bool = False
    class_weight: ClassWeight = None
    standardize: Literal["auto", "whiten", "scale", "none"] | bool = "auto"
    update: str | Strategy = "igt"
    update_fraction: float = 0.8
    node_sampling: NodeSampling = "size"
    refresh: float | Literal["auto"] = "auto"
    sample_dtype: Literal["float32", "float16"] = "float32"
    memory: str | os.PathLike[str] | None = None
    memory_limit: str | int | None = None
    keep_per_class: int | None = None
    n_jobs: int | None = None
    device: str | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0


@dataclass(eq=False, repr=False, kw_only=True)
class VotingParameters:
    """How leaves vote, in forests whose classes are all of one level."""

    balance: float | Literal["auto"] = "auto"


def complete_docstring(*, has_class_means: bool) -> Callable[[Forest], Forest]:
    """Write what all forests share into the docstring of a forest, in place of placeholders.

    Forests whose nodes compare with class means have one more update strategy.
    """
    update = _UPDATE_MEANS if has_class_means else _UPDATE_OTHERS
    standardize = _STANDARDIZE_MEANS if has_class_means else _STANDARDIZE_OTHERS

    def complete(forest: Forest) -> Forest:
        shared = {
            "{n_estimators}": _N_ESTIMATORS,
            "{common parameters}": "\n".join([_BEFORE_UPDATE, standardize, update, _AFTER_UPDATE]),
            "{balance}": _BALANCE,
            "{common attributes}": _ATTRIBUTES,
            "{update}": _literal(forest, "update"),
            "{refresh}": _literal(forest, "refresh"),
            "{example}": _EXAMPLE.replace("FOREST", forest.__name__),
        }
        if forest.__doc__:
            text = inspect.cleandoc(forest.__doc__)
            for placeholder, content in shared.items():
                text = text.replace(placeholder, content)
            forest.__doc__ = text
        return forest

    return complete


def _literal(forest: type, parameter: str) -> str:
    """The default of a parameter as it is written in Python."""
    value = getattr(forest, parameter)
    return f'"{value}"' if isinstance(value, str) else repr(value)
