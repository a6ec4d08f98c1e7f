"""Least squares with a rebalanced loss, in one batch [Camoriano2017 Eq. 22]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from evergrow.estimators.linear.feature_map import RFF, ReLU
from evergrow.estimators.linear.fitted import FittedRLS
from evergrow.estimators.linear.predictor import RULES, RLSPredictor
from evergrow.estimators.linear.request import RLSRequest
from evergrow.estimators.sums.moments import Batch
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Rule


@dataclass(eq=False, repr=False, kw_only=True)
class RebalancedRLSClassifier(RLSPredictor):
    """Regularised least squares in which every class counts the same.

    Each example is weighted by how rare its class is [Camoriano2017 Eq. 22]. These weights change
    with every example, so there is no ``partial_fit``: all examples must be learnt at once. If
    :meth:`fit` gets sample weights, the size of a class is the sum of its weights. This is the
    baseline for :class:`~evergrow.RLSClassifier`, which favours rare classes by recoding instead.

    Parameters
    ----------
    regularization : float or "auto", default="auto"
        Penalty on the weights, above 0. Use more for few or noisy examples. ``"auto"`` selects the
        penalty that predicts left-out examples best.
    fit_intercept : bool, default=True
        Whether to add a constant feature, which is hardly penalised.
    standardize : bool, default=False
        Whether to centre each feature and divide it by its standard deviation.
    n_random_features : int, default=0
        Number of random nonlinear features that replace the input; 0 uses the input itself.
    feature_map : {"relu", "rff"} or feature map, default="relu"
        Nonlinearity of the random features: :class:`~evergrow.estimators.ReLU` or
        :class:`~evergrow.estimators.RFF`.
    blocks : sequence of int, default=None
        Widths of groups of columns to choose among, as in :class:`~evergrow.RLSClassifier`.
    selection : {"leave-one-out", "paper"}, default="leave-one-out"
        How values for ``"auto"`` are judged, as in :class:`~evergrow.RLSClassifier`.
    max_stored : int, default=2000
        Approximate number of examples that are stored to judge ``"auto"``.
    validation_every : int, default=6
        Only with ``selection="paper"``: every n-th example of each class is held out.
    refit_held_out : bool, default=True
        Only with ``selection="paper"``: whether the held-out examples are learnt too, after the
        selection.
    random_state : int, RandomState or None, default=None
        Seed of the random features and of the sample of stored examples.
    verbose : int, default=0
        Show a progress bar if positive.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights. With random features, the weights of those.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts.
    regularization_ : float
        The penalty in use.
    temperature_ : float
        The number by which scores are divided before the softmax of :meth:`predict_proba`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    See Also
    --------
    RLSClassifier : Learns one example at a time.

    Examples
    --------
    >>> from evergrow.estimators import RebalancedRLSClassifier
    >>> model = RebalancedRLSClassifier(regularization=0.1)
    >>> model.fit([[0], [1], [2], [9]], ["a", "a", "a", "b"]).predict([[6]])
    array(['b'], dtype='<U1')
    """

    _rules: ClassVar[dict[str, list[Rule]]] = RULES

    regularization: float | Literal["auto"] = "auto"
    fit_intercept: bool = True
    standardize: bool = False
    n_random_features: int = 0
    feature_map: Literal["relu", "rff"] | ReLU | RFF = "relu"
    blocks: Sequence[int] | None = None
    selection: Literal["leave-one-out", "paper"] = "leave-one-out"
    max_stored: int = 2000
    validation_every: int = 6
    refit_held_out: bool = True
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    def _begin(self, labels: ClassList, new: Batch) -> FittedRLS:
        shares = np.bincount(new.codes, new.weights) / new.weights.sum()
        rebalanced = Batch(new.rows, new.codes, new.weights / shares[new.codes])
        nothing = self._learn_nothing(labels, new.rows, new.weights)
        return nothing.extend(labels, rebalanced, RLSRequest.of(self))
