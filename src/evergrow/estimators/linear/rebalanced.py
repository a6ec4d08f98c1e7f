"""Least squares with a rebalanced loss, in one batch: the third column of Camoriano 2017."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear import teach
from evergrow.estimators.linear.estimator import RULES, LeastSquaresClassifier
from evergrow.estimators.linear.feature_map import RFF, ReLU
from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.examples import weighted
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Rule
from evergrow.foundation.turns import one_at_a_time

__all__ = ["RebalancedRLSClassifier"]


class RebalancedRLSClassifier(LeastSquaresClassifier):
    """Regularised least squares in which every class counts the same, Eq. (22) of Camoriano 2017.

    Each example is weighted by how rare its class is. These weights change with every example, so
    there is no way to learn one more without all others: this is the baseline for
    :class:`~evergrow.RLSClassifier`, which favours rare classes by recoding instead.

    Parameters
    ----------
    regularization : float or "auto", default="auto"
        Penalty on the weights. ``"auto"`` chooses by the accuracy on held-out examples.
    fit_intercept : bool, default=True
        Add a constant feature, which is hardly penalised.
    standardize : bool, default=False
        Centre each feature and divide it by its standard deviation.
    n_random_features : int, default=0
        Replace the input by this many fixed random features; 0 takes it as it is.
    feature_map : {"relu", "rff"} or feature map, default="relu"
        Nonlinearity of the random features.
    validation_every : int, default=6
        With ``"auto"``, every so many-th example of each class is held out to choose by.
    max_held_out : int, default=2000
        Held-out examples at most.
    refit_held_out : bool, default=True
        Predict with weights that have learnt held-out examples too.
    random_state : int, RandomState or None, default=None
        Seed of the random features and of the choice of held-out examples.
    verbose : int, default=0
        Show a progress bar when positive.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    coef_, intercept_ : ndarray of shape (n_classes, n_features) and (n_classes,)
        Weights; of the random features if there are any.
    regularization_, temperature_ : float
        Penalty in use, and what scores are divided by for probabilities.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    Examples
    --------
    >>> from evergrow.estimators import RebalancedRLSClassifier
    >>> model = RebalancedRLSClassifier(regularization=0.1)
    >>> model.fit([[0], [1], [2], [9]], ["a", "a", "a", "b"]).predict([[6]])
    array(['b'], dtype='<U1')
    """

    _rules: ClassVar[dict[str, list[Rule]]] = RULES

    def __init__(
        self,
        *,
        regularization: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        standardize: bool = False,
        n_random_features: int = 0,
        feature_map: Literal["relu", "rff"] | ReLU | RFF = "relu",
        validation_every: int = 6,
        max_held_out: int = 2000,
        refit_held_out: bool = True,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.n_random_features = n_random_features
        self.feature_map = feature_map
        self.validation_every = validation_every
        self.max_held_out = max_held_out
        self.refit_held_out = refit_held_out
        self.random_state = random_state
        self.verbose = verbose

    @one_at_a_time
    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Train on examples and their classes, forgetting whatever was learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, also as :class:`evergrow.Shards`.
        y : array-like of shape (n_samples,)
            Classes: integers or strings.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, at least 0; they count when classes are weighed against each other too.

        Returns
        -------
        self : estimator
            The fitted estimator. If training fails or is interrupted it stays as it was.

        Examples
        --------
        >>> from evergrow.estimators import RebalancedRLSClassifier
        >>> model = RebalancedRLSClassifier(regularization=1.0)
        >>> model.fit([[0], [1], [8], [9]], ["a", "a", "b", "b"]).predict([[7]])
        array(['b'], dtype='<U1')
        """
        self._check_parameters()
        X, y, names = self._checked_first(X, y, min_samples=1)
        X, y, weights = weighted(X, y, sample_weight)
        labels, codes = ClassList.of(y)
        shares = np.bincount(codes, weights) / weights.sum()
        examples = Batch(X, codes, weights / shares[codes])
        fitted = teach.extend(
            self._nothing_yet(X, weights, labels), labels, examples, self._recipe()
        )
        self._become(fitted, names)
        return self
