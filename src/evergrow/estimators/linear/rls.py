"""Incremental regularised least squares: parameters, learning and prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.persistence import InferenceSaveMixin
from evergrow.estimators.classifier.predictor import as_decision, identity, softmax
from evergrow.estimators.linear.equations import SCORINGS, Ridge
from evergrow.estimators.linear.feature_map import (
    FEATURE_RULES,
    FeatureMap,
    Features,
)
from evergrow.estimators.linear.fitted import (
    FittedRLS,
    FixedWeights,
    LinearScores,
    no_moments,
)
from evergrow.estimators.linear.request import (
    SELECTION_RULES,
    HoldOut,
    LeaveOneOut,
    RLSRequest,
    selection_of,
)
from evergrow.estimators.linear.scoring import ClassScale
from evergrow.estimators.linear.selection import SelectionRequest, default_penalty
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.learner import SumsLearner
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.engine import current_engine
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import (
    Choice,
    Flag,
    Nothing,
    Number,
    RandomState,
    Rule,
    Satisfies,
)

Floats = npt.NDArray[np.float64]


def _are_widths(value: Any) -> bool:
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)):
        return False
    whole = all(isinstance(width, (int, np.integer)) for width in value)
    return len(value) > 0 and whole and min(value) > 0


@dataclass(eq=False, repr=False, kw_only=True)
class RLSClassifier(InferenceSaveMixin, SumsLearner):
    """Regularised least squares that learns one example at a time, new classes included.

    The model is ridge regression with one column of weights per class [Camoriano2017 Alg. 1]. It
    learns from sums over the examples, so the time per example is constant, and :meth:`forget` and
    :meth:`merge` are exact. The sums take 8 bytes times the square of the number of features, and
    the update of the weights needs as much again. Up to about 2000 examples are also stored
    (`selection`), but only to select the parameters that are ``"auto"`` and the `blocks`.

    *Recoding* raises the scores of rare classes, so that a class of three examples is not ignored
    next to classes of thousands. This is the default learner of :class:`~evergrow.ImageClassifier`
    and of workspaces.

    Parameters
    ----------
    regularization : float or "auto", default="auto"
        Penalty on the weights (lambda), above 0. Use a larger one for few or noisy examples.
        ``"auto"`` selects the penalty that predicts left-out examples best. The selection is
        repeated whenever the number of examples has doubled. Can be changed at any time.
    recoding : float in [0, 1] or "auto", default="auto"
        How much rare classes are favoured (alpha): 0 not at all, 1 in proportion to how rare they
        are. ``"auto"`` selects the largest value with the best accuracy on left-out examples of
        classes with at least 30 examples. If no class has so many, the classes with at least half
        the weight of the largest decide. If the smallest class has less than a quarter of the
        examples of the median class, the value may cost one point of this accuracy, or one standard
        error if that is more. The selection is repeated whenever one percent of the classes, and at
        least one, are new or have doubled their number of examples. Can be changed at any time.
    scoring : {"cosine", "regression"}, default="cosine"
        How the scores of the classes are computed:

        - ``"cosine"``: the regression is fitted to the class means, one example per class, and the
          score of a class is the cosine between the example and its class mean, in the metric of
          the regression. It is more accurate with many classes. If the largest class has more than
          twice the examples of the smallest, the regression is fitted to all examples instead when
          left-out examples are then predicted better. This needs stored examples and
          ``selection="leave-one-out"``;
        - ``"regression"``: the regression is fitted to all examples, and the scores are compared as
          they are, as in the paper.

        Can be changed at any time.
    fit_intercept : bool, default=True
        Whether to add a constant feature, which is hardly penalised. With it, an offset of the
        features has no effect.
    standardize : bool, default=False
        Whether to centre each feature and divide it by its standard deviation over all examples so
        far. Without an intercept, features are divided but not centred. With True, the weights are
        computed from scratch after every update, which takes longer.
    features : {"auto"}, ReLU, RFF or Auto, default=None
        Random nonlinear features: :class:`~evergrow.estimators.ReLU` or
        :class:`~evergrow.estimators.RFF` in place of the input, such as ``ReLU(4000)``. ``"auto"``,
        or :class:`~evergrow.estimators.Auto` with a limit on memory, adds as many to the input as
        leave-one-out predictions show to help. None uses the input itself. The input is not
        centred, so centre features whose mean is far from zero compared with their spread.
    blocks : sequence of int, default=None
        Widths of groups of columns, such as the blocks of :class:`~evergrow.Embedder`. The first
        block is always used, the others only if leave-one-out predictions show that they help. The
        selection is repeated whenever the number of examples has doubled. None uses all columns, as
        random features in place of the input do.
    selection : {"leave-one-out"}, LeaveOneOut or HoldOut, default="leave-one-out"
        How the values of ``"auto"`` parameters and the blocks are selected: by predictions for
        about 2000 stored examples that are left out in turn
        (:class:`~evergrow.estimators.LeaveOneOut`), or as in the paper on examples that are held
        out (:class:`~evergrow.estimators.HoldOut`). If nothing is to be selected, no examples are
        stored.
    keep_class_statistics : bool, default=False
        Whether to keep sums for each class, so that :meth:`forget` can remove a class without its
        examples. They take 8 bytes times the square of the number of features, for each class.
    random_state : int, RandomState or None, default=None
        Seed of the random features and of the sample of stored examples. Models with random
        features can be merged only if they have the same integer.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of the features after recoding. Random features have columns in place of the input,
        or after it with ``features="auto"``. Features that are not used have zeros.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts after recoding.
    regularization_ : float
        The penalty in use.
    recoding_ : float
        The recoding in use.
    temperature_ : float
        The number by which scores are divided before the softmax of :meth:`predict_proba`.
    regresses_means_ : bool
        Whether the regression is fitted to the class means. Otherwise it is fitted to all examples.
    used_blocks_ : tuple of int
        Indices of the blocks in use.
    n_random_features_ : int
        Number of random features in use.
    class_counts_ : ndarray of shape (n_classes,)
        Number of examples learnt per class.
    n_stored_ : ndarray of shape (n_classes,)
        Number of stored examples per class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    See Also
    --------
    NCMClassifier : The nearest class mean; faster, with one mean per class.
    NCMForestClassifier : A forest, for classes that a linear model does not separate.
    RejectingClassifier : Adds the answer "unknown".

    References
    ----------
    R. Camoriano, G. Pasquale, C. Ciliberto, L. Natale, L. Rosasco, G. Metta: *Incremental Robot
    Learning of New Objects with Fixed Update Time*, ICRA 2017. See :doc:`/papers`.

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

    _request = RLSRequest
    _kind = FittedRLS
    _fitted: FittedRLS = field(init=False)

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "regularization": [Number(0.0, open_low=True), Choice(("auto",))],
        "fit_intercept": [Flag()],
        "standardize": [Flag()],
        "features": FEATURE_RULES,
        "blocks": [
            Satisfies("a sequence of positive integers, such as (1280, 320)", _are_widths),
            Nothing(),
        ],
        "selection": SELECTION_RULES,
        "random_state": [RandomState(), Nothing()],
        "recoding": [Number(0.0, 1.0), Choice(("auto",))],
        "scoring": [Choice(SCORINGS)],
        "keep_class_statistics": [Flag()],
    }

    regularization: float | Literal["auto"] = "auto"
    recoding: float | Literal["auto"] = "auto"
    scoring: Literal["cosine", "regression"] = "cosine"
    fit_intercept: bool = True
    standardize: bool = False
    features: Literal["auto"] | Features = None
    blocks: Sequence[int] | None = None
    selection: Literal["leave-one-out"] | LeaveOneOut | HoldOut = "leave-one-out"
    keep_class_statistics: bool = False
    random_state: int | np.random.RandomState | None = None

    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """Compute the score of each class: weights times features, after recoding.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            One column per class. With two classes there is one column: the score of the second
            class minus that of the first. A class without examples has minus infinity.

        Examples
        --------
        >>> from evergrow import RLSClassifier
        >>> model = RLSClassifier(regularization=0.1, recoding=0.0)
        >>> model.fit([[0], [5], [9]], ["a", "b", "c"]).decision_function([[0]]).shape
        (1, 3)
        """
        reader, X = self._checked_query(X)
        return as_decision(reader._map_scores(X, identity))

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Predict class probabilities: the softmax of the scores divided by a temperature.

        If examples are stored, the temperature is fitted on left-out ones, so the probabilities are
        calibrated. Examples are stored if a parameter is ``"auto"`` or if there are two or more
        `blocks`. If none or only a few are stored, the temperature is a constant. Then only the
        order of the probabilities is meaningful, not their values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.

        Examples
        --------
        >>> from evergrow import RLSClassifier
        >>> model = RLSClassifier(regularization=0.1, recoding=0.0)
        >>> model.fit([[0], [5], [9]], ["a", "b", "c"]).predict_proba([[0]]).argmax()
        np.int64(0)
        """
        reader, X = self._checked_query(X)
        function = partial(softmax, temperature=reader.temperature_)
        with reader._scores(normalised=True) as scores:
            return reader._map_scores(X, function, scores)

    @property
    def regularization_(self) -> float:
        """The penalty in use."""
        fitted: FittedRLS = self._require_fitted("regularization_")
        if self.regularization != "auto":
            return float(self.regularization)
        chosen = fitted.selection
        if chosen is None or chosen.request.penalty is not None:
            ridge = Ridge(1.0, bool(self.standardize), fitted.intercept)
            columns = self._selection_request.columns(self._used_blocks)
            places = replace(ridge, columns=columns).places(fitted.moments.n_features)
            moments = fitted.moments if columns is None else fitted.moments.with_features(places)
            return default_penalty(moments, ridge)
        return chosen.penalty

    @property
    def recoding_(self) -> float:
        """The recoding in use."""
        chosen = self._require_fitted("recoding_").selection
        requested = RLSRequest.of(self).selection.recoding
        if requested is not None:
            return requested
        return 0.0 if chosen is None or chosen.request.recoding is not None else chosen.recoding

    @property
    def used_blocks_(self) -> tuple[int, ...]:
        """Indices of the blocks in use; empty without `blocks`."""
        used = self._used_blocks
        n_blocks = len(RLSRequest.of(self).selection.blocks)
        return tuple(k for k in used if k < n_blocks)

    @property
    def regresses_means_(self) -> bool:
        """Whether the regression is fitted to the class means; otherwise to all examples."""
        self._require_fitted("regresses_means_")
        return self._ridge().counts_means

    @property
    def n_random_features_(self) -> int:
        """Number of random features in use."""
        features = self._require_fitted("n_random_features_").features
        if not features.with_inputs:
            return int(features.n_random)
        return self._selection_request.n_random_used(self._used_blocks)

    @property
    def _selection_request(self) -> SelectionRequest:
        """What is to be selected, random features next to the input included."""
        fitted: FittedRLS = self._fitted
        return fitted.complete(RLSRequest.of(self).selection)

    @property
    def _used_blocks(self) -> tuple[int, ...]:
        """Indices of the blocks in use, with those of random features."""
        chosen = self._require_fitted("used_blocks_").selection
        blocks = self._selection_request.blocks
        if chosen is None or chosen.request.blocks != blocks:
            # The first one until others have shown that they help.
            return (0,) if blocks else ()
        return cast("tuple[int, ...]", chosen.blocks)

    @property
    def temperature_(self) -> float:
        """The number by which scores are divided before the softmax of :meth:`predict_proba`."""
        self._require_fitted("temperature_")
        reader = self._frozen_copy()
        request = RLSRequest.of(reader).selection
        return reader._fitted.temperature(reader._ridge(), reader.recoding_, request)

    @property
    def class_counts_(self) -> npt.NDArray[np.int64]:
        """Number of examples learnt per class."""
        moments: Moments = self._require_fitted("class_counts_").moments
        return moments.class_examples.copy()

    @property
    def n_stored_(self) -> npt.NDArray[np.int64]:
        """Number of stored examples per class."""
        fitted: FittedRLS = self._require_fitted("n_stored_")
        return fitted.holdout.with_classes(len(fitted.labels)).counts

    @property
    def coef_(self) -> Floats:
        """Weights of the features after recoding, one row per class."""
        self._require_fitted("coef_")
        return self._frozen_copy()._recoded_weights()[0]

    @property
    def intercept_(self) -> Floats:
        """Weights of the constant feature after recoding; zero without one."""
        self._require_fitted("intercept_")
        return self._frozen_copy()._recoded_weights()[1]

    def _check_suits(self, fitted: FittedRLS) -> None:
        RLSRequest.of(self).check_structure(fitted)

    def _stored_value(self, inference_only: bool) -> FittedRLS:
        fitted = self._fitted
        if not inference_only:
            return fitted
        ridge = self._ridge()
        with fitted.solution(ridge, with_held_out=self._learns_stored) as current:
            weights, own = (np.array(part) for part in current)
        moments, plain = fitted.moments, replace(ridge, columns=None)
        parts = (moments.class_weights, moments.class_examples, moments.shift)
        return replace(fitted, fixed=FixedWeights(weights, own, plain, self.temperature_, *parts))

    def _stored_parameters(self, inference_only: bool) -> dict[str, Any]:
        parameters = super()._stored_parameters(inference_only)
        if inference_only:
            # The stored examples that it was selected on are not in the file.
            parameters["regularization"] = self.regularization_
        if self.blocks is not None:
            parameters["blocks"] = [int(width) for width in self.blocks]
        return parameters

    def _begin(self, labels: ClassList, new: Batch) -> FittedRLS:
        """Return the fitted value for the first examples."""
        request = RLSRequest.of(self)
        request.check_blocks(new.rows.shape[1])
        seed, intercept = self._seed(new.rows), request.fit_intercept
        features = FeatureMap.of(request.features, seed, new)
        sums = {"intercept": intercept, "per_class": request.keep_class_statistics}
        moments = no_moments(features, new.rows, len(labels), **sums)
        holdout = Holdout.none(request.judged_by.max_stored, seed)
        nothing = FittedRLS(labels, moments, features, intercept, holdout)
        return nothing.extend(labels, new, request)

    def _seed(self, X: npt.NDArray[Any]) -> int:
        drawn = check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64)
        engine = current_engine()
        if engine is None or self.random_state is not None:
            return int(drawn)
        # Resumed work continues with the same random features and held-out examples.
        name = f"seed of {type(self).__name__} for {X.shape[0]} x {X.shape[1]}"
        return int(engine.restore_or_make(name, lambda: {"seed": np.array([drawn])})["seed"][0])

    @property
    def _learns_stored(self) -> bool:
        """Whether predictions use the weights that are learnt from stored examples too."""
        return bool(selection_of(self.selection).refit)

    def _used_features(self) -> npt.NDArray[np.int64] | slice:
        """Return the indices of the features in use, without the constant one."""
        columns = RLSRequest.of(self).selection.columns(self.used_blocks_)
        ridge = Ridge(1.0, intercept=False, columns=columns)
        return ridge.places(self._fitted.features.n_features)

    def _ridge(self) -> Ridge:
        request = self._selection_request
        columns, by_means = request.columns(self._used_blocks), self._by_means()
        options = (request.standardize, self._fitted.intercept, columns, request.scoring, by_means)
        return Ridge(self.regularization_, *options)

    def _by_means(self) -> bool:
        """Whether the regression is fitted to the class means if scores are cosines.

        What was selected counts as long as the parameters are those that it was selected for.
        """
        fixed, chosen = self._fitted.fixed, self._fitted.selection
        if fixed is not None:
            return fixed.ridge.by_means
        request = RLSRequest.of(self).selection
        if chosen is None or chosen.request.scoring != request.scoring:
            return True
        return chosen.by_means or chosen.request.penalty != request.penalty

    @contextmanager
    def _scores(self, *, normalised: bool = False) -> Iterator[LinearScores]:
        """Context manager: scores of the classes, which are valid while the block runs."""
        fitted, ridge = self._fitted, self._ridge()
        features = fitted.features
        if features.with_inputs and not self.n_random_features_:
            features = FeatureMap.plain(features.n_inputs)
        with fitted.solution(ridge, with_held_out=self._learns_stored) as solution:
            scale = ClassScale.of(
                fitted.moments,
                solution.own_scores,
                self.recoding_,
                ridge,
                normalised=normalised,
            )
            shift = fitted.moments.shift
            shift = None if shift is None else shift[: features.n_features]
            yield LinearScores(features, solution.weights, scale, fitted.intercept, shift)

    def _score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Yield scores after recoding; minus infinity for classes without examples."""
        with self._scores() as scores:
            yield from scores.blocks(X)

    def _portable_scores(self) -> LinearScores:
        """Return the solved weights, without the sums."""
        with self._scores() as scores:
            return scores.copy()

    def _recoded_weights(self) -> tuple[Floats, Floats]:
        fitted = self._fitted
        n_features = fitted.features.n_features
        with self._scores() as scores:
            weights, scale = scores.weights, scores.scale
            intercepts = weights[:, -1] if fitted.intercept else np.zeros(len(weights))
            intercepts = (intercepts - scale.offsets) * scale.factors
            coefficients = weights[:, :n_features] * scale.factors[:, None]
            if fitted.moments.shift is not None:
                intercepts = intercepts - coefficients @ fitted.moments.shift[:n_features]
            return coefficients, intercepts
