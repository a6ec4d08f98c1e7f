"""Incremental regularised least squares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from evergrow.estimators.linear import changes
from evergrow.estimators.linear.feature_map import RFF, ReLU
from evergrow.estimators.linear.fitted import FittedRLS
from evergrow.estimators.linear.predictor import RULES, RLSPredictor
from evergrow.estimators.sums.learner import SumsLearner
from evergrow.estimators.sums.moments import Batch
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Choice, Flag, Number, Rule


class RLSClassifier(RLSPredictor, SumsLearner):
    """Regularised least squares that learns one example at a time, new classes included.

    The method is that of [Camoriano2017 Alg. 1]: one column of weights per class, found by least
    squares from sums over the examples. So the time per example is constant, the result does not
    depend on the order of the examples, and examples can be forgotten and models merged exactly.
    *Recoding* weights classes by how rare they are, so that a class of three examples is not
    ignored next to classes of thousands.

    Parameters
    ----------
    regularization : float or "auto", default="auto"
        Penalty on the weights (lambda). Use more for few or noisy examples. ``"auto"`` selects it
        by the accuracy on held-out examples, each time the number of examples has doubled. May
        change at any time.
    recoding : float in [0, 1] or "auto", default="auto"
        How much rare classes are favoured (alpha): 0 not at all, 1 in proportion to how rare they
        are. ``"auto"`` selects the largest of 0, 0.1, ... 1 that does not measurably lower the
        accuracy on held-out examples of classes with at least 30 others. May change at any time.
    fit_intercept : bool, default=True
        Add a constant feature that is hardly penalised, so that an offset of the features has no
        effect.
    standardize : bool, default=False
        Centre each feature and divide it by its standard deviation over all examples so far;
        without an intercept only divide. This is exact, but weights have to be solved again after
        every update.
    n_random_features : int, default=0
        Replace the input by this many fixed random features; 0 uses the input itself. With a few
        thousand, least squares is as accurate as kernel methods; memory and time are quadratic in
        their number.
    feature_map : {"relu", "rff"} or feature map, default="relu"
        Nonlinearity of the random features: :class:`~evergrow.estimators.ReLU` or
        :class:`~evergrow.estimators.RFF`.
    validation_every : int, default=6
        With ``"auto"``, every n-th example of each class is held out.
    max_held_out : int, default=2000
        Maximum number of held-out examples that are kept, of all classes together: a uniform
        sample per class.
    refit_held_out : bool, default=True
        Predict with weights that are learnt from held-out examples too; parameters are still
        selected without them. With False, as in the paper, they are never learnt, and weights are
        solved again after every update. May change at any time.
    keep_class_statistics : bool, default=False
        Keep sums per class, so that :meth:`forget` can remove a whole class without its examples.
        Needs memory: 8 bytes times the square of the number of features for each class.
    random_state : int, RandomState or None, default=None
        Seed of the random features and of the sample of held-out examples. Models with random
        features need the same integer to be merged.
    verbose : int, default=0
        Show a progress bar when positive.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    coef_, intercept_ : ndarray of shape (n_classes, n_features) and (n_classes,)
        Weights after recoding; of the random features if there are any.
    regularization_, recoding_, temperature_ : float
        Penalty and recoding in use, and the number that scores are divided by for probabilities.
    class_counts_ : ndarray of shape (n_classes,)
        Number of examples learnt per class.
    n_held_out_ : ndarray of shape (n_classes,)
        Number of held-out examples per class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from evergrow import RLSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = RLSClassifier(random_state=0).fit(X[y < 8][:800], y[y < 8][:800])
    >>> for example, label in zip(X[y >= 8][:40], y[y >= 8][:40]):  # two new classes
    ...     model = model.partial_fit([example], [label])
    >>> model.classes_
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    >>> bool(model.score(X[-400:], y[-400:]) > 0.8)
    True
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        **RULES,
        "recoding": [Number(0.0, 1.0), Choice(("auto",))],
        "keep_class_statistics": [Flag()],
    }

    def __init__(
        self,
        *,
        regularization: float | Literal["auto"] = "auto",
        recoding: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        standardize: bool = False,
        n_random_features: int = 0,
        feature_map: Literal["relu", "rff"] | ReLU | RFF = "relu",
        validation_every: int = 6,
        max_held_out: int = 2000,
        refit_held_out: bool = True,
        keep_class_statistics: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            regularization=regularization,
            fit_intercept=fit_intercept,
            standardize=standardize,
            n_random_features=n_random_features,
            feature_map=feature_map,
            validation_every=validation_every,
            max_held_out=max_held_out,
            refit_held_out=refit_held_out,
            random_state=random_state,
            verbose=verbose,
        )
        self.recoding = recoding
        self.keep_class_statistics = keep_class_statistics

    @property
    def _recoding(self) -> float | None:
        return None if self.recoding == "auto" else float(self.recoding)

    def _extend(self, known: FittedRLS, labels: ClassList, new: Batch) -> FittedRLS:
        return changes.extend(known, labels, new, changes.RLSRequest.of(self))

    def _forget(self, known: FittedRLS, gone: Batch) -> FittedRLS:
        return changes.forget(known, gone, changes.RLSRequest.of(self))

    def _forget_classes(self, known: FittedRLS, columns: list[int]) -> FittedRLS:
        return changes.forget_classes(known, columns, changes.RLSRequest.of(self))

    def _rename(self, known: FittedRLS, names: Mapping[Any, Any]) -> FittedRLS:
        return changes.rename(known, names, changes.RLSRequest.of(self))

    def _merge(self, known: FittedRLS, other: FittedRLS) -> FittedRLS:
        return changes.merge(known, other, changes.RLSRequest.of(self))

    def _differences(self, known: FittedRLS, other: FittedRLS) -> list[str]:
        return changes.differences(known, other)

    def _check_unchanged(self, known: FittedRLS, action: str) -> None:
        if known.fixed is not None:
            raise InvalidInputError(
                f"cannot {action}: the model was saved with inference_only=True and has only "
                "weights"
            )
        changes.check_structure(self, known)
