"""The forest with coarse and fine classes of Ristin, Gall, Guillaumin and Van Gool (CVPR 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from evergrow.estimators.forest.ncm_forest import NCM_RULES
from evergrow.estimators.forest.parameters import ForestParameters, complete_docstring
from evergrow.estimators.forest.request import FOREST_RULES
from evergrow.estimators.forest.strategy import Strategy
from evergrow.estimators.subcategory.guess.guesser import Guesser
from evergrow.estimators.subcategory.guess.registry import GUESSER_RULES
from evergrow.estimators.subcategory.learner import SubcategoryLearner
from evergrow.estimators.subcategory.methods import METHODS
from evergrow.foundation.params import Choice, Number, Rule


@dataclass(eq=False, repr=False, kw_only=True)
class SubcategoryParameters:
    """Parameters in addition to those that all forests have."""

    method: str = "ridge-h"
    guess: str | Guesser = "auto"
    coarse_weight: float | Literal["auto"] = "auto"
    class_means: Literal["both", "fine"] = "both"
    smoothing: float = 3.0
    stack_scale: float = 10.0
    refine_share: float = 0.33
    n_subsets: int = 100
    n_assignments: int = 50
    subset_scale: float = 1.0
    cost_weight: float = 0.001
    max_scoring_samples: Literal["auto"] | int | None = 1024
    n_centroids: Literal["sqrt", "log2"] | float | int = "sqrt"


@complete_docstring(has_class_means=True)
@dataclass(eq=False, repr=False, kw_only=True)
class SubcategoryForestClassifier(ForestParameters, SubcategoryLearner, SubcategoryParameters):
    """A forest that predicts fine classes and also learns from samples with only coarse labels.

    Labels have two levels: every sample has a coarse class, such as "dog", and some samples have a
    fine class, such as "beagle". Where fine labels are scarce, samples without one still show where
    the coarse classes lie, and guesses of their fine class are right more often than not. The
    ``method`` decides how they are used.

    Labels may have more levels, such as "animal", "dog" and "beagle": a column for each, or one
    column and a ``hierarchy``. A sample may be labelled on any level. The paper has two levels;
    what each method does with more is an extension, described in the user guide. ``"stacked"`` has
    two levels only.

    All levels grow: :meth:`partial_fit` takes new coarse classes, new fine classes of known coarse
    classes, and samples with or without fine labels; :meth:`refine` gives fine labels to stored
    samples. A coarse class without known fine classes is predicted as itself.

    The nodes are those of regularised nearest class mean forests: each tries many subsets of the
    classes and weighs the information gain of a split against the number of means it compares with
    [Ristin2015 Eq. 5].

    With ``keep_per_class``, samples without a given fine label are evicted first. Guesses are made
    from the features as given, whatever ``standardize`` is.

    Parameters
    ----------
    {n_estimators}
    method : {"ridge-h", "nn-h", "hierarchical", "nn", "joint", "stacked", "fine-only"}, \
default="ridge-h"
        How samples without a fine label are used.

        - ``"fine-only"``: not at all.
        - ``"stacked"``: a first forest learns their coarse classes, and its predictions are
          appended to the features of the second. An update with a new coarse class grows the
          second forest again. It cannot :meth:`refine`.
        - ``"joint"``: splits also separate their coarse classes.
        - ``"hierarchical"``: splits also separate the coarse classes of all samples, and leaves
          predict P(coarse) P(fine | coarse). The best choice without guesses, for features
          whose nearest neighbours say little about the class.
        - ``"nn"``: their fine class is guessed from the nearest neighbour of their coarse class.
        - ``"nn-h"``: as ``"hierarchical"``, with these guesses.
        - ``"ridge-h"``: as ``"hierarchical"``, with guesses by ridge regression within the coarse
          class, which are right more often.

        ``"fine-only"`` and ``"nn"`` ignore new samples that have no fine label, given or guessed.
        Stored samples stay: if their coarse class is divided later, or their guess is discarded
        later, they count for their coarse class.

        May change between ``"hierarchical"``, ``"nn-h"`` and ``"ridge-h"`` from one update to the
        next: the forest is the same.
    guess : {"auto", "ridge", "nn", "nn-unconstrained", "nn-discard", "forest"} or value, \
default="auto"
        How the methods that guess do it: ``"auto"`` for the method's own guesser, or one of those
        of :func:`evergrow.estimators.guess_fine`. A value such as ``RidgeGuesser(scaling=1.0)``
        carries its own options.
    coarse_weight : float, default="auto"
        Weight of separating coarse classes relative to separating fine ones, lambda in
        [Ristin2015 Eq. 6]: 0.1 for ``"joint"`` and 1 for the hierarchical methods. Raise it, even
        to 100, for features of thousands of dimensions. With more levels, the weight of each level
        above the finest.
    class_means : {"both", "fine"}, default="both"
        Whether nodes compare with means of coarse and fine classes or of fine ones alone, which is
        a little faster and less accurate. Only ``"joint"`` and the hierarchical methods use both.
    smoothing : float, default=3.0
        For the hierarchical methods: number of samples that the fine class frequencies of the
        parent node count for in those of a node. Raise it if few samples have fine labels. May be
        changed at any time.
    stack_scale : float, default=10.0
        For ``"stacked"``: factor of the probabilities of the first forest. Features are
        standardised (see ``standardize``), the probabilities are not: with 10, a certain coarse
        class counts like ten standard deviations of a feature.
    refine_share : float, default=0.33
        A subtree grows again when at least this share of its samples belongs to one coarse class
        that is refined. Lower is more accurate and slower; above 1 only leaves grow.
    n_subsets : int, default=100
        Subsets of classes that a node tries, at most a hundredth of all possible ones: with few
        classes all trees would otherwise be the same. More subsets make trees that are more
        accurate, faster to predict with and slower to train.
    n_assignments : int, default=50
        Ways of sending the means of a subset left or right that a node tries.
    subset_scale : float, default=1.0
        Largest size of a subset, as a multiple of ``n_centroids``. 3 is a little more accurate for
        almost twice the comparisons; 10 pays for features of thousands of dimensions.
    cost_weight : float, default=0.001
        Cost of each further mean to compare with, in nats [Ristin2015 Eq. 5]. Raise it for faster
        predictions.
    max_scoring_samples : "auto", int or None, default=1024
        A larger node tries its splits on this many random samples; None for all, which is slower.
        ``"auto"`` is three for each class, at least 256, and enough if all samples have a fine
        label, known or guessed. Raise it for ``"joint"`` with few fine labels among many samples:
        with labels for 4 % of CIFAR-100 features, 4096 gained two points.
    n_centroids : {"sqrt", "log2"}, float or int, default="sqrt"
        Size of subsets: the square root or binary logarithm of the number of classes, a fraction
        of it, or a fixed number.
    {common parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The finest classes, in the order of the columns of :meth:`predict_proba`: within one call
        coarse classes without fine ones before fine classes, each sorted. A column never moves. A
        coarse class that was predicted as itself keeps its column when it is divided, with
        probability 0.
    coarse_classes_ : ndarray of shape (n_coarse_classes,)
        The coarse classes, in the order of the columns of ``predict_proba(X, level="coarse")``.
    level_classes_ : list of ndarray
        The classes of each level from coarse to fine, in the order of the columns of
        ``predict_proba(X, level=k)``: those of the level, and coarser ones without finer classes.
    hierarchy_ : dict
        Coarse class of each fine class; with more levels, the class above each class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.
    sample_ids_ : ndarray of shape (n_samples,)
        Ids of the samples of the last :meth:`fit` or :meth:`partial_fit`, including samples that
        the method does not use.
    stored_ids_ : ndarray
        Ids of all samples that the forest stores.
    update_report_ : UpdateReport
        What the last call that trained or forgot did.
    guess_report_ : GuessReport
        How many fine labels the last call guessed, and how often such guesses are right. Missing
        if the call guessed none.

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
        "guess": [Choice(("auto",)), *GUESSER_RULES],
        "coarse_weight": [Choice(("auto",)), Number(0.0)],
        "class_means": [Choice(("both", "fine"))],
        "smoothing": [Number(0.0)],
        "stack_scale": [Number(0.0)],
        "refine_share": [Number(0.0)],
    }

    update: str | Strategy = "rust"
    refresh: float | Literal["auto"] = 0.0

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that a label is a path of classes, but that there is one prediction."""
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        return tags
