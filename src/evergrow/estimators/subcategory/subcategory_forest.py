"""The forest with coarse and fine classes of Ristin, Gall, Guillaumin and Van Gool (CVPR 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from evergrow.estimators.forest.forests import ForestParameters, complete_docstring
from evergrow.estimators.forest.request import FOREST_RULES, splits_rules
from evergrow.estimators.forest.splits import Regularised
from evergrow.estimators.forest.strategy import STRATEGY_RULES, Strategy
from evergrow.estimators.subcategory.guessers import GUESSER_RULES, Guesser
from evergrow.estimators.subcategory.learner import SubcategoryLearner
from evergrow.estimators.subcategory.methods import METHODS
from evergrow.foundation.params import Choice, Nothing, Number, Rule


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


@complete_docstring(has_class_means=True)
@dataclass(eq=False, repr=False, kw_only=True)
class SubcategoryForestClassifier(ForestParameters, SubcategoryLearner, SubcategoryParameters):
    """A forest that predicts fine classes and also learns from samples with only coarse labels.

    Every sample has a coarse class, such as "dog". Some samples also have a fine class, such as
    "beagle". If fine labels are scarce, samples without one still help: they show where the coarse
    classes are, and their fine class can be guessed. The parameter `method` decides how they are
    used. See :doc:`/subcategories`.

    Both levels can grow. :meth:`partial_fit` adds new coarse classes, new fine classes of known
    coarse classes, and samples with or without fine labels. :meth:`refine` gives fine labels to
    stored samples. A coarse class without fine classes is predicted as itself.

    Labels may have more than two levels, such as "animal", "dog" and "beagle", and a sample may be
    labelled on any of them. This extends the paper, and every method but ``"stacked"`` can do it.

    The trees are those of a regularised NCM forest: a node tries many subsets of the classes and
    weighs the information gain of a split against the number of means [Ristin2015 Eq. 5].

    Parameters
    ----------
    {n_estimators}
    method : {"ridge-h", "nn-h", "hierarchical", "nn", "joint", "stacked", "fine-only"}, \
default="ridge-h"
        How samples without a fine label are used.

        - ``"fine-only"``: not at all.
        - ``"stacked"``: a first forest learns coarse classes from the samples without a fine label,
          or from all samples if every one has a fine label. Its probabilities are appended to the
          features of a second forest, which learns from the samples with a fine label. An update
          with a new coarse class grows the second forest again. :meth:`refine` is not available.
        - ``"joint"``: splits separate the fine classes and also the coarse classes of samples
          without a fine label.
        - ``"hierarchical"``: splits separate the fine classes and the coarse classes of all
          samples, and leaves predict P(coarse) P(fine | coarse). The best method without guesses.
        - ``"nn"``: the fine class is guessed from the nearest neighbour of the same coarse class.
        - ``"nn-h"``: ``"hierarchical"`` with the guesses of ``"nn"``.
        - ``"ridge-h"``: ``"hierarchical"`` with guesses by ridge regression within the coarse
          class, which are right more often.

        ``"fine-only"`` and ``"nn"`` ignore new samples that have neither a given nor a guessed fine
        label. ``"hierarchical"``, ``"nn-h"`` and ``"ridge-h"`` build the same kind of forest, so
        you can change between them from one update to the next.
    guess : {"auto", "ridge", "nn"} or guesser, default="auto"
        How missing fine labels are guessed. ``"auto"`` follows `method`. The others are explained
        in :func:`~evergrow.estimators.guess_fine`. A guesser object such as
        ``RidgeGuesser(scaling=1.0)`` sets its own options. Guesses are made from the features as
        given, whatever `standardize` is.
    coarse_weight : float or "auto", default="auto"
        Weight of separating coarse classes relative to separating fine ones (lambda in
        [Ristin2015 Eq. 6]). ``"auto"`` is 0.1 for ``"joint"`` and 1 for the hierarchical methods.
        Raise it, up to 100, for features of thousands of dimensions. With more levels, it is the
        weight of each level above the finest.
    class_means : {"both", "fine"}, default="both"
        Whether nodes compare with the means of coarse and fine classes, or of fine classes only.
        ``"fine"`` is a little faster and less accurate. Only ``"joint"`` and the hierarchical
        methods use both.
    smoothing : float, default=3.0
        Only for the hierarchical methods: how much the fine class frequencies of a node are
        smoothed with those of its parent node, which count like this many samples. Raise it if few
        samples have fine labels. Can be changed at any time.
    stack_scale : float, default=10.0
        Only for ``"stacked"``: factor by which the probabilities of the first forest are
        multiplied. With 10, a certain coarse class counts like ten standard deviations of a
        feature.
    refine_share : float, default=0.33
        :meth:`refine` grows a subtree again if at least this share of its samples belongs to one
        refined coarse class. Lower values are more accurate and slower. Above 1, only leaves grow.
    splits : "auto" or Regularised, default="auto"
        How nodes find their splits. ``"auto"`` is ``Regularised(scoring_samples=1024)``.
    {common parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The finest classes, in the order of the columns of :meth:`predict_proba`. A column never
        moves. In each call, coarse classes without fine ones come first, then fine classes, each
        sorted. A coarse class that later gets fine classes keeps its column, with probability 0.
    coarse_classes_ : ndarray of shape (n_coarse_classes,)
        The coarse classes, in the order of the columns of ``predict_proba(X, level="coarse")``.
    level_classes_ : list of ndarray
        The classes of each level from coarse to fine, in the order of the columns of
        ``predict_proba(X, level=k)``. A class without finer ones is also listed on the levels
        below it.
    hierarchy_ : dict
        The coarse class of each fine class. With more levels, the class above each class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.
    sample_ids_ : ndarray of shape (n_samples,)
        Ids of the samples of the last :meth:`fit` or :meth:`partial_fit`, including samples that
        the method does not use.
    stored_ids_ : ndarray of shape (n_stored,)
        Ids of all samples that the forest stores. With ``Storage.per_class``, samples without a
        given fine label are removed first.
    standardize_ : {"whiten", "scale", "none"}
        How the features were scaled.
    equal_lengths_ : bool
        Whether samples were scaled to nearly the same length.
    update_report_ : UpdateReport
        Statistics of the last call that trained or forgot.
    guess_report_ : GuessReport
        How many fine labels the last call guessed, and how often such guesses are right. Only
        present if the call guessed labels.

    See Also
    --------
    NCMForestClassifier : A forest for classes of one level.
    evergrow.estimators.guess_fine : Guess missing fine labels without a forest.

    References
    ----------
    M. Ristin, J. Gall, M. Guillaumin, L. Van Gool: *From Categories to Subcategories: Large-scale
    Image Classification with Partial Class Label Refinement*, CVPR 2015. See :doc:`/papers`.

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
        "splits": splits_rules(Regularised),
        "update": [Nothing(), *STRATEGY_RULES],
        "method": [Choice(tuple(METHODS))],
        "guess": [Choice(("auto",)), *GUESSER_RULES],
        "coarse_weight": [Choice(("auto",)), Number(0.0)],
        "class_means": [Choice(("both", "fine"))],
        "smoothing": [Number(0.0)],
        "stack_scale": [Number(0.0)],
        "refine_share": [Number(0.0)],
    }

    update: str | Strategy | None = None

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that a label is a path of classes, but that there is one prediction."""
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        return tags
