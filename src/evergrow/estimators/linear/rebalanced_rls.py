"""Least squares with a rebalanced loss, in one batch [Camoriano2017 Eq. 22]."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear.changes import RLSRequest, extend
from evergrow.estimators.linear.predictor import RULES, RLSPredictor
from evergrow.estimators.sums.accumulation import check_weights
from evergrow.estimators.sums.moments import Batch
from evergrow.foundation.labels import ClassList
from evergrow.foundation.locks import exclusive
from evergrow.foundation.params import Rule


class RebalancedRLSClassifier(RLSPredictor):
    """Regularised least squares in which every class counts the same [Camoriano2017 Eq. 22].

    Each example is weighted by how rare its class is. These weights change with every example, so
    all examples must be learnt at once. This is the baseline for
    :class:`~evergrow.RLSClassifier`, which favours rare classes by recoding instead.

    Parameters
    ----------
    regularization : float or "auto", default="auto"
        Penalty on the weights. ``"auto"`` selects it by the accuracy on held-out examples.
    fit_intercept : bool, default=True
        Add a constant feature that is hardly penalised.
    standardize : bool, default=False
        Centre each feature and divide it by its standard deviation.
    n_random_features : int, default=0
        Replace the input by this many fixed random features; 0 uses the input itself.
    feature_map : {"relu", "rff"} or feature map, default="relu"
        Nonlinearity of the random features.
    validation_every : int, default=6
        With ``"auto"``, every n-th example of each class is held out.
    max_held_out : int, default=2000
        Maximum number of held-out examples.
    refit_held_out : bool, default=True
        Predict with weights that are learnt from held-out examples too.
    random_state : int, RandomState or None, default=None
        Seed of the random features and of the sample of held-out examples.
    verbose : int, default=0
        Show a progress bar when positive.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    coef_, intercept_ : ndarray of shape (n_classes, n_features) and (n_classes,)
        Weights; of the random features if there are any.
    regularization_, temperature_ : float
        Penalty in use, and the number that scores are divided by for probabilities.
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

    @exclusive
    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Train on examples and their classes, discarding what was learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, also as :class:`evergrow.Shards`.
        y : array-like of shape (n_samples,)
            Classes: integers or strings.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, at least 0. They also count for how rare a class is.

        Returns
        -------
        self : estimator
            The fitted estimator. If training fails or is interrupted, it stays as it was.

        Examples
        --------
        >>> from evergrow.estimators import RebalancedRLSClassifier
        >>> model = RebalancedRLSClassifier(regularization=1.0)
        >>> model.fit([[0], [1], [8], [9]], ["a", "a", "b", "b"]).predict([[7]])
        array(['b'], dtype='<U1')
        """
        self._check_parameters()
        X, y, names = self._checked_first(X, y, min_samples=1)
        X, y, weights = check_weights(X, y, sample_weight)
        labels, codes = ClassList.of(y)
        nothing = self._learn_nothing(labels, X, weights)
        shares = np.bincount(codes, weights) / weights.sum()
        rebalanced = Batch(X, codes, weights / shares[codes])
        self._set_fitted(extend(nothing, labels, rebalanced, RLSRequest.of(self)), names)
        return self
