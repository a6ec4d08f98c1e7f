"""Forests that learn from coarse and fine labels (Ristin et al., CVPR 2015) as an estimator."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Literal

import numpy as np

from evergrow.estimators.forest.request import FOREST_RULES, ForestRequest
from evergrow.estimators.forest.splits import (
    NCM_RULES,
    FixedSplits,
    SplitRules,
    assignments_per_subset,
    largest_subset,
    scoring_samples,
    subsets_per_node,
)
from evergrow.estimators.forest.strategies import NodeSampling, Strategy
from evergrow.estimators.subcategory.filling import Guess
from evergrow.estimators.subcategory.growing import GrowingSubcategories
from evergrow.estimators.subcategory.guesser import Guesser
from evergrow.estimators.subcategory.guessers import GuesserRule, guesser_of
from evergrow.estimators.subcategory.hierarchy import LabelTree
from evergrow.estimators.subcategory.learning import Plan
from evergrow.estimators.subcategory.methods import METHODS, Method
from evergrow.foundation.params import Choice, Number, Rule

__all__ = ["SubcategoryForestClassifier"]


class SubcategoryForestClassifier(GrowingSubcategories):
    """A forest that predicts fine classes and also learns from samples with coarse labels only.

    Labels have two levels: a coarse class, such as "dog", of every sample, and a fine one, such as
    "beagle", of some. Where fine labels are scarce, samples without them still tell where the
    coarse classes lie, and a guess at their fine class is right more often than not. Which use is
    made of them is the ``method``.

    Both levels grow: :meth:`partial_fit` takes new coarse classes, new fine ones of known coarse
    ones, and samples with or without fine labels; :meth:`refine` gives samples that are stored
    already their fine labels. A coarse class of which no fine one is known is predicted as itself.

    Nodes are those of regularised nearest class mean forests: each tries many subsets of classes
    and weighs what a split gains against the number of means it compares with.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees. More are more accurate, with less and less to gain.
    method : {"ridge-h", "nn-h", "hierarchical", "nn", "joint", "stacked", "fine-only"}, \
default="ridge-h"
        What samples without a fine label are used for.

        - ``"fine-only"``: nothing.
        - ``"stacked"``: a first forest learns their coarse classes, and what it answers is appended
          to the features of the second. Cannot be updated.
        - ``"joint"``: splits shall also tell their coarse classes apart.
        - ``"hierarchical"``: splits shall also tell the coarse classes of all samples apart, and
          leaves answer with P(coarse) P(fine | coarse). The best choice that guesses nothing, for
          features in which near neighbours mean little.
        - ``"nn"``: their fine class is guessed from the nearest neighbour of their coarse class.
        - ``"nn-h"``: as ``"hierarchical"``, with these guesses.
        - ``"ridge-h"``: as ``"hierarchical"``, with guesses by ridge regression within the coarse
          class, which are right more often.

        ``"fine-only"`` and ``"nn"`` leave out samples without a fine label, given or guessed, when
        they come. A sample that is stored already stays: where its coarse class is divided later,
        or its guess is thrown away later, it goes on as one of its coarse class.

        May change between ``"hierarchical"``, ``"nn-h"`` and ``"ridge-h"`` from one update to the
        next: the forest is the same.
    guess : {"auto", "ridge", "nn", "nn-unconstrained", "nn-discard", "forest"} or value, \
default="auto"
        How missing fine labels are guessed by the methods that do: ``"auto"`` for the method's own
        way, or one of those of :func:`evergrow.estimators.guess_fine`. A value such as
        ``RidgeGuesser(scaling=1.0)`` carries its own options.
    coarse_weight : float, default="auto"
        What telling coarse classes apart counts beside telling fine ones apart (lambda of Eq. 6):
        0.1 for ``"joint"`` and 1 for the hierarchical methods. Raise it, to 100 even, for features
        of thousands of dimensions.
    class_means : {"both", "fine"}, default="both"
        Whether nodes compare with means of coarse and fine classes or of fine ones alone, which is
        a little faster and less accurate. Only ``"joint"`` and the hierarchical methods use both.
    smoothing : float, default=3.0
        How many samples the fine class shares of the parent node count for in those of a node, for
        the hierarchical methods. Raise it where few samples have fine labels. May be changed at any
        time.
    stack_scale : float, default=10.0
        What the probabilities of the first forest of ``"stacked"`` are multiplied by. Features are
        standardised before (see ``standardize``), the probabilities are not: at 10, a coarse class
        that is certain counts like ten standard deviations of a feature.
    refine_share : float, default=0.33
        A subtree grows again when at least this share of its samples belongs to one coarse class
        that is refined. Lower is more accurate and slower; above 1 nothing but leaves grows.
    n_subsets : int, default=100
        Subsets of classes that a node tries, but never more than a hundredth of all there are:
        with few classes all trees would otherwise be the same. More make trees that are more
        accurate and cheaper to ask, and slower to train.
    n_assignments : int, default=50
        Ways of sending the means of a subset left or right that a node tries.
    subset_scale : float, default=1.0
        Largest size of a subset, as a multiple of ``n_centroids``. 3 is a little more accurate at
        almost twice the comparisons; 10 pays for features of thousands of dimensions.
    cost_weight : float, default=0.001
        What one more mean to compare with costs, in nats of gain (Eq. 5). Raise it for faster
        answers.
    max_scoring_samples : "auto", int or None, default=1024
        A larger node tries its splits on this many random samples; None for all, which is slower.
        ``"auto"`` is three for each class, at least 256, and enough where all samples have a fine
        label, known or guessed. Raise it for ``"joint"`` with few fine labels among many samples:
        with labels for 4 % of CIFAR-100 features 4096 gained two points.
    n_centroids : {"sqrt", "log2"}, float or int, default="sqrt"
        Size of subsets: the square root or binary logarithm of the number of classes, a fraction
        of it, or a fixed number.
    min_samples_leaf : int, default=10
        Fewest training samples in a leaf, with or without fine labels.
    min_gain : float, default=1e-7
        A split must gain more information than this, in nats.
    max_samples : float or int, default=None
        Share or number of the samples that each tree sees; None for all.
    bootstrap : bool, default=False
        Draw the samples of each tree with replacement.
    standardize : bool, default=True
        Centre each feature and divide it by its standard deviation, as measured on the first
        data. Switch it off for features that already share a scale that matters. Guesses are made
        from the features as they come.
    update : {"rust", "rtst", "igt", "uls"} or strategy, default="rust"
        How :meth:`partial_fit` takes new samples, as for :class:`NCMForestClassifier`.
    update_fraction : float, default=0.8
        Share of the splitting nodes that ``"rust"`` and ``"rtst"`` choose per update.
    node_sampling : {"size", "uniform", "quality"}, default="size"
        What makes a node likely to be chosen.
    refresh : float, default=0.0
        Share of the trees that each update grows again from scratch, in turn.
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
        Keep at most this many samples of a class; None for all. Samples whose fine label nobody
        gave go first, and either kind is a uniform choice of those seen.
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
        The finest classes, in the order of the columns of :meth:`predict_proba`: within one call
        coarse classes without fine ones before fine classes, each sorted. A column never moves. A
        coarse class that was predicted as itself keeps its column when it is divided, with
        probability 0.
    coarse_classes_ : ndarray of shape (n_coarse_classes,)
        The coarse classes, in the order of the columns of ``predict_proba(X, level="coarse")``.
    hierarchy_ : dict
        Coarse class by fine class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.
    sample_ids_ : ndarray of shape (n_samples,)
        Ids of the samples of the last :meth:`fit` or :meth:`partial_fit`; samples that the method
        has no use for have one as well.
    stored_ids_ : ndarray
        Ids of all samples that the forest keeps.
    update_report_ : UpdateReport
        What the last call that trained or forgot did.
    guess_report_ : GuessReport
        How many fine labels the last call guessed, and how often such guesses are right; not there
        if it guessed none.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from evergrow import SubcategoryForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> coarse = np.where(y % 2, "odd", "even")
    >>> fine = np.where(np.arange(len(y)) % 5 == 0, y, -1)  # every fifth is known
    >>> Y = np.column_stack([coarse.astype(object), fine])
    >>> forest = SubcategoryForestClassifier(10, random_state=0).fit(X[:1000], Y[:1000])
    >>> bool(forest.score(X[1000:], np.column_stack([coarse.astype(object), y])[1000:]) > 0.85)
    True
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        **FOREST_RULES,
        **NCM_RULES,
        "method": [Choice(tuple(METHODS))],
        "guess": [Choice(("auto",)), GuesserRule()],
        "coarse_weight": [Choice(("auto",)), Number(0.0)],
        "class_means": [Choice(("both", "fine"))],
        "smoothing": [Number(0.0)],
        "stack_scale": [Number(0.0)],
        "refine_share": [Number(0.0)],
    }

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        method: str = "ridge-h",
        guess: str | Guesser = "auto",
        coarse_weight: float | Literal["auto"] = "auto",
        class_means: Literal["both", "fine"] = "both",
        smoothing: float = 3.0,
        stack_scale: float = 10.0,
        refine_share: float = 0.33,
        n_subsets: int = 100,
        n_assignments: int = 50,
        subset_scale: float = 1.0,
        cost_weight: float = 0.001,
        max_scoring_samples: Literal["auto"] | int | None = 1024,
        n_centroids: Literal["sqrt", "log2"] | float | int = "sqrt",
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
        self.n_estimators = n_estimators
        self.method = method
        self.guess = guess
        self.coarse_weight = coarse_weight
        self.class_means = class_means
        self.smoothing = smoothing
        self.stack_scale = stack_scale
        self.refine_share = refine_share
        self.n_subsets = n_subsets
        self.n_assignments = n_assignments
        self.subset_scale = subset_scale
        self.cost_weight = cost_weight
        self.max_scoring_samples = max_scoring_samples
        self.n_centroids = n_centroids
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.standardize = standardize
        self.update = update
        self.update_fraction = update_fraction
        self.node_sampling = node_sampling
        self.refresh = refresh
        self.sample_dtype = sample_dtype
        self.memory = memory
        self.memory_limit = memory_limit
        self.keep_per_class = keep_per_class
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        ForestRequest.of(self, FixedSplits({}))
        if self.guess != "auto" and METHODS[self.method].guesser is None:
            able = [name for name, method in METHODS.items() if method.guesser is not None]
            raise ValueError(
                f"guess={self.guess!r} but method={self.method!r} guesses nothing; "
                f"use guess='auto', or one of the methods {able}"
            )

    def _plan(self, seed: int) -> Plan:
        method = METHODS[self.method]
        way = method.guesser if isinstance(self.guess, str) and self.guess == "auto" else self.guess
        return Plan(
            name=self.method,
            recipe=self._recipe,
            guess=None if way is None else self._guess(way, seed),
            refine_share=float(self.refine_share),
            stack_scale=float(self.stack_scale),
        )

    def _guess(self, way: str | Guesser, seed: int) -> Guess:
        return Guess(guesser_of(way), seed, self.n_jobs, self.verbose)

    def _recipe(self, tree: LabelTree) -> ForestRequest:
        rules = self._split_rules(tree, METHODS[self.method])
        return ForestRequest.of(self, FixedSplits({len(tree): rules}))

    def _split_rules(self, tree: LabelTree, method: Method) -> SplitRules:
        coarse_means = method.coarse_means and self.class_means == "both"
        n_means = int(tree.is_finest.sum()) + (int(tree.is_divided.sum()) if coarse_means else 0)
        largest = largest_subset(self.n_centroids, self.subset_scale, n_means)
        weight = method.coarse_weight if self.coarse_weight == "auto" else self.coarse_weight
        return {
            "proposer": "regularised",
            "n_centroids": largest,
            "n_candidates": assignments_per_subset(self.n_assignments, self.n_subsets),
            "min_samples_leaf": self.min_samples_leaf,
            "min_gain": self.min_gain,
            "regularization": 0.0,
            "n_subsets": subsets_per_node(self.n_subsets, largest, n_means),
            "cost_weight": self.cost_weight,
            "max_scoring_samples": scoring_samples(self.max_scoring_samples, n_means),
            "objective": method.objective,
            "coarse_weight": float(weight),
            "coarse_means": coarse_means,
            "parents": tree.parents.tolist(),
        }

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that labels have two columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        return tags
