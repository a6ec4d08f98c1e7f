"""A forest of linear support vector machines."""

from __future__ import annotations

from typing import ClassVar, Unpack

from evergrow.estimators.forest.explanation import LinearDecision
from evergrow.estimators.forest.learner import ForestLearner
from evergrow.estimators.forest.parameters import CommonParameters
from evergrow.estimators.forest.request import FOREST_RULES
from evergrow.estimators.forest.splits import SVM_RULES, SVMSplits
from evergrow.estimators.forest.strategies import Strategy
from evergrow.foundation.params import Rule


class SVMForestClassifier(ForestLearner):
    """A random forest whose nodes split by a linear support vector machine.

    Each splitting node divides its classes at random into two halves, trains a linear SVM between
    them, and keeps the best of several such hyperplanes. They are better than random hyperplanes
    or class means, so the trees have fewer nodes, but training takes many times as long.

    The SVMs minimise the hinge loss by dual coordinate descent with the bias as a constant
    feature, on samples that each node centres and scales to the spread of standardised features.
    They stop when the optimality conditions hold to 0.1 or after 5 sweeps, and a node with more
    than 2000 samples trains them on 2000 drawn at random.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees. More trees are more accurate, with diminishing returns.
    n_candidates : int, default=20
        SVMs that a node trains, each between two other halves of its classes. If there are no
        more halves than this, all of them are tried. More are slower and more accurate.
    regularization : float, default=1.0
        The C of the SVMs: the weight of samples on the wrong side relative to a wide margin.
        Lower it for noisy samples or to train faster.
    {common parameters}

    Attributes
    ----------
    {common attributes}

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
    _splits = SVMSplits
    _decision = LinearDecision
    _rules: ClassVar[dict[str, list[Rule]]] = {**FOREST_RULES, **SVM_RULES}

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        n_candidates: int = 20,
        regularization: float = 1.0,
        update: str | Strategy = "igt",
        **common: Unpack[CommonParameters],
    ) -> None:
        super().__init__(n_estimators, update=update, **common)
        self.n_candidates = n_candidates
        self.regularization = regularization
