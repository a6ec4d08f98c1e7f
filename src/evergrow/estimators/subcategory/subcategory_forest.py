"""The forest with coarse and fine classes of Ristin, Gall, Guillaumin and Van Gool (CVPR 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from evergrow.estimators.forest.forests import ForestParameters, complete_docstring
from evergrow.estimators.forest.request import FOREST_RULES, splits_rules
from evergrow.estimators.forest.splits import Regularised
from evergrow.estimators.forest.strategy import STRATEGY_RULES, Strategy
from evergrow.estimators.subcategory.learner import SubcategoryLearner
from evergrow.estimators.subcategory.methods import METHOD_RULES, Method
from evergrow.foundation.params import Nothing, Rule


@dataclass(eq=False, repr=False, kw_only=True)
class SubcategoryParameters:
    """Parameters in addition to those that all forests have."""

    method: str | Method = "ridge-h"


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
    method : {"ridge-h", "nn-h", "hierarchical", "nn", "joint", "stacked", "fine-only"} or method, \
default="ridge-h"
        How samples without a fine label are used.

        - ``"fine-only"``: not at all.
        - ``"stacked"``: a first forest learns coarse classes from the samples without a fine label.
          Its probabilities become features of a second forest, which learns from the others.
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
        you can change between them from one update to the next. A value such as
        ``Hierarchical(guess="ridge", smoothing=10.0)`` sets the options of a method:
        :class:`~evergrow.estimators.Hierarchical`, :class:`~evergrow.estimators.Joint`,
        :class:`~evergrow.estimators.Stacked` or :class:`~evergrow.estimators.FineOnly`.
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
        "method": METHOD_RULES,
    }

    update: str | Strategy | None = None

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that a label is a path of classes, but that there is one prediction."""
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        return tags
