"""Parameters that all forests have: their types, and the docstrings and signatures made of them.

A forest lists its own parameters and takes the others as ``**common``. :func:`complete_class` then
gives its constructor the full signature, which scikit-learn reads, and its docstring the full list.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, Literal, TypedDict

import numpy as np

from evergrow.estimators.forest.strategies import NodeSampling


class CommonParameters(TypedDict, total=False):
    """Keyword arguments of every forest, apart from those that each class lists itself."""

    min_samples_leaf: int
    min_gain: float
    max_samples: float | int | None
    bootstrap: bool
    standardize: bool
    update_fraction: float
    node_sampling: NodeSampling
    refresh: float
    sample_dtype: Literal["float32", "float16"]
    memory: str | os.PathLike[str] | None
    memory_limit: str | int | None
    keep_per_class: int | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    verbose: int


_UPDATE_MEANS = """\
update : {"rust", "rtst", "igt", "uls"} or strategy, default="rust"
    How :meth:`partial_fit` takes new samples: ``"uls"`` counts them in the leaves they reach,
    ``"igt"`` also lets these leaves grow, ``"rust"`` also gives chosen nodes the means of new
    classes, ``"rtst"`` grows chosen subtrees again. Each is more accurate and slower than the
    one before. A value such as ``RTST(share=0.5)`` carries its own options. May change
    between updates.
update_fraction : float, default=0.8
    Share of the splitting nodes that ``"rust"`` and ``"rtst"`` choose per update."""

_UPDATE_OTHERS = """\
update : {"igt", "rtst", "uls"} or strategy, default="igt"
    How :meth:`partial_fit` takes new samples: ``"uls"`` counts them in the leaves they reach,
    ``"igt"`` also lets these leaves grow, ``"rtst"`` grows chosen subtrees again. Each is more
    accurate and slower than the one before. A value such as ``RTST(share=0.5)`` carries its
    own options. May change between updates.
update_fraction : float, default=0.8
    Share of the splitting nodes that ``"rtst"`` chooses per update."""

_BEFORE_UPDATE = """\
min_samples_leaf : int, default=10
    Fewest training samples in a leaf. Smaller leaves make deeper, larger, slightly more
    accurate trees.
min_gain : float, default=1e-7
    A split must gain more information than this, in nats.
max_samples : float or int, default=None
    Share or number of the samples that each tree sees; None for all. Fewer samples make smaller
    trees that differ more.
bootstrap : bool, default=False
    Draw the samples of each tree with replacement.
standardize : bool, default=True
    Centre each feature and divide it by its standard deviation, as measured on the first data.
    Switch it off for features that already share a meaningful scale, such as pixels: they are
    then centred and divided by one common number, which changes nothing but rounding."""

_AFTER_UPDATE = """\
node_sampling : {"size", "uniform", "quality"}, default="size"
    What makes a node likely to be chosen: a small subtree, nothing, or a subtree that separates
    its samples badly.
refresh : float, default=0.0
    Share of the trees that each update grows again from scratch, in turn. 0.04 costs little and
    keeps the newest classes accurate.
sample_dtype : {"float32", "float16"}, default="float32"
    Precision of the training samples that the forest stores for its updates.
memory : path, default=None
    Store the samples in this file and memory-map it, for more samples than fit into memory.
memory_limit : str or int, default=None
    Most memory that training may use in addition to the trees, such as ``"4GiB"``, ``"600MiB"``
    or a number of bytes; None for no limit. Samples beyond it go to a temporary file (in
    ``TMPDIR``, else ``/var/tmp``): large nodes read them from there, small subtrees are grown in
    memory. The forest is the same; training takes up to twice as long.
keep_per_class : int, default=None
    Store at most this many samples of a class, chosen uniformly from those seen; None for all.
    The class counts in the leaves still count every sample.
n_jobs : int, default=None
    Threads, as in scikit-learn: None is 1, -1 all processors. The forest does not depend on it.
random_state : int, RandomState or None, default=None
    Seed. The same seed gives the same forest.
verbose : int, default=0
    Show a progress bar when positive."""

_ATTRIBUTES = """\
classes_ : ndarray of shape (n_classes,)
    The classes, in the order of the columns of :meth:`predict_proba`.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, if the training data had any.
sample_ids_ : ndarray of shape (n_samples,)
    Ids of the samples of the last :meth:`fit` or :meth:`partial_fit`.
stored_ids_ : ndarray
    Ids of all samples that the forest stores.
update_report_ : UpdateReport
    What the last call that trained or forgot did."""


def complete_class(cls: type, common_init: Callable[..., None], *, has_class_means: bool) -> None:
    """Give a forest the full signature and docstring.

    ``{common parameters}`` and ``{common attributes}`` in the docstring are replaced.
    """
    if cls.__doc__:
        update = _UPDATE_MEANS if has_class_means else _UPDATE_OTHERS
        parameters = "\n".join([_BEFORE_UPDATE, update, _AFTER_UPDATE])
        text = inspect.cleandoc(cls.__doc__).replace("{common parameters}", parameters)
        cls.__doc__ = text.replace("{common attributes}", _ATTRIBUTES)
    init: Any = vars(cls).get("__init__")
    own = {} if init is None else dict(inspect.signature(init).parameters)
    if own.pop("common", None) is not None:
        common = inspect.signature(common_init).parameters
        missing = [parameter for name, parameter in common.items() if name not in own]
        init.__signature__ = inspect.Signature([*own.values(), *missing], return_annotation=None)
