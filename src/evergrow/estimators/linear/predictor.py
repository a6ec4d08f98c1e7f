"""Prediction with least squares, and model files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.persistence import InferenceSaveMixin, ModelContent
from evergrow.estimators.classifier.predictor import ScoringClassifier, as_decision, identity
from evergrow.estimators.linear.changes import RLSRequest, check_structure, extend
from evergrow.estimators.linear.feature_map import (
    RFF,
    FeatureMap,
    IsFeatureMap,
    ReLU,
    map_from_json,
    map_to_json,
    resolve_map,
)
from evergrow.estimators.linear.fitted import (
    FittedRLS,
    FixedWeights,
    LinearScores,
    as_probabilities,
)
from evergrow.estimators.linear.selection import default_penalty, normalising_factors, recode
from evergrow.estimators.linear.serialization import fitted_from_arrays, fitted_to_arrays
from evergrow.estimators.linear.solver import Ridge
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.engine import current_engine
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import (
    Choice,
    Flag,
    Integer,
    Nothing,
    Number,
    RandomState,
    Rule,
    check_parameters,
)
from evergrow.storage.modelfile import (
    Build,
    class_list,
    common_header,
    feature_names,
    parameters_of,
    plain_parameters,
)

Floats = npt.NDArray[np.float64]

RULES: dict[str, list[Rule]] = {
    "regularization": [Number(0.0, open_low=True), Choice(("auto",))],
    "fit_intercept": [Flag()],
    "standardize": [Flag()],
    "n_random_features": [Integer(0, 1_000_000)],
    "feature_map": [IsFeatureMap()],
    "validation_every": [Integer(2)],
    "max_held_out": [Integer(1)],
    "refit_held_out": [Flag()],
    "random_state": [RandomState(), Nothing()],
    "verbose": [Integer(0), Flag()],
}


class RLSPredictor(InferenceSaveMixin, ScoringClassifier):
    """Regularised least squares that predicts; subclasses add learning."""

    _fitted: FittedRLS

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

    @property
    def _recoding(self) -> float | None:
        """The requested recoding; None to select it."""
        return 0.0

    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """Compute the scores of the classes: weights times features, after recoding.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            One column per class; for two classes the score of the second minus that of the first.
            Minus infinity for a class without examples.

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

        If a parameter is ``"auto"``, the temperature is fitted on held-out examples, so that the
        probabilities are calibrated. With numbers for both parameters nothing is held out and the
        temperature is a constant, so that the probabilities only order the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.

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
        factors = normalising_factors(reader._fitted.moments, reader.recoding_)
        function = partial(as_probabilities, temperature=reader.temperature_)
        with reader._scores(factors) as scores:
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
            return default_penalty(fitted.moments, ridge)
        return chosen.penalty

    @property
    def recoding_(self) -> float:
        """The recoding in use."""
        chosen = self._require_fitted("recoding_").selection
        if self._recoding is not None:
            return self._recoding
        return 0.0 if chosen is None or chosen.request.recoding is not None else chosen.recoding

    @property
    def temperature_(self) -> float:
        """The number that scores are divided by to become probabilities."""
        self._require_fitted("temperature_")
        reader = self._frozen_copy()
        return reader._fitted.temperature(reader._ridge(), reader.recoding_)

    @property
    def class_counts_(self) -> npt.NDArray[np.int64]:
        """Number of examples learnt per class."""
        moments: Moments = self._require_fitted("class_counts_").moments
        return moments.class_examples.copy()

    @property
    def n_held_out_(self) -> npt.NDArray[np.int64]:
        """Number of held-out examples per class."""
        fitted: FittedRLS = self._require_fitted("n_held_out_")
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

    def _to_file(self, *, inference_only: bool = False) -> ModelContent:
        reader = self._checked_to_save()
        check_structure(reader, reader._fitted)
        fitted, fixed = reader._fitted, None
        if inference_only:
            ridge = reader._ridge()
            with fitted.weights(ridge, with_held_out=reader.refit_held_out) as current:
                fixed = FixedWeights(np.array(current), ridge, reader.temperature_)
        learnt, arrays = fitted_to_arrays(fitted, fixed)
        parameters = plain_parameters(reader.get_params(deep=False))
        if inference_only:
            # The held-out examples that it was selected on are left out.
            parameters["regularization"] = reader.regularization_
        parameters["feature_map"] = map_to_json(parameters["feature_map"])
        return {**learnt, **common_header(reader, parameters, fitted.labels)}, arrays

    @classmethod
    def _from_file(
        cls,
        header: dict[str, Any],
        tensors: dict[str, npt.NDArray[Any]],
        build: Build,  # noqa: ARG003
    ) -> Self:
        parameters = parameters_of(header)
        parameters = {**parameters, "feature_map": map_from_json(parameters.get("feature_map"))}
        check_parameters({**cls().get_params(), **parameters}, cls._rules)
        fitted = fitted_from_arrays(class_list(header), header, tensors)
        model = cls(**parameters)
        check_structure(model, fitted)
        model._set_fitted(fitted, feature_names(header, fitted.n_features))
        return model

    def _begin(self, labels: ClassList, new: Batch) -> FittedRLS:
        """Return the fitted value for the first examples."""
        nothing = self._learn_nothing(labels, new.rows, new.weights)
        return extend(nothing, labels, new, RLSRequest.of(self))

    def _learn_nothing(self, labels: ClassList, X: npt.NDArray[Any], weights: Floats) -> FittedRLS:
        """Return the fitted value before any example is learnt."""
        seed = self._seed(X)
        features = FeatureMap.plain(X.shape[1])
        if self.n_random_features:
            wanted = resolve_map(self.feature_map)
            features = FeatureMap.random(wanted, self.n_random_features, seed, X, weights)
        holdout = Holdout.none(self.max_held_out, seed)
        moments = Moments.none(
            features.n_features + bool(self.fit_intercept),
            len(labels),
            gram=True,
            per_class=bool(getattr(self, "keep_class_statistics", False)),
        )
        return FittedRLS(labels, features, bool(self.fit_intercept), moments, holdout)

    def _seed(self, X: npt.NDArray[Any]) -> int:
        drawn = check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64)
        engine = current_engine()
        if engine is None or self.random_state is not None:
            return int(drawn)
        # Resumed work continues with the same random features and held-out examples.
        name = f"seed of {type(self).__name__} for {X.shape[0]} x {X.shape[1]}"
        return int(engine.restore_or_make(name, lambda: {"seed": np.array([drawn])})["seed"][0])

    def _ridge(self) -> Ridge:
        return Ridge(self.regularization_, bool(self.standardize), self._fitted.intercept)

    @contextmanager
    def _scores(self, factors: Floats) -> Iterator[LinearScores]:
        """Lend scores times a factor per class, which are valid while the block runs."""
        fitted = self._fitted
        with fitted.weights(self._ridge(), with_held_out=bool(self.refit_held_out)) as weights:
            yield LinearScores(fitted.features, weights, factors, fitted.intercept)

    def _score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Yield scores after recoding; minus infinity for classes without examples."""
        with self._scores(recode(self._fitted.moments, self.recoding_)) as scores:
            yield from scores.blocks(X)

    def _portable_scores(self) -> LinearScores:
        """Return the solved weights, without the sums."""
        with self._scores(recode(self._fitted.moments, self.recoding_)) as scores:
            return scores.copy()

    def _recoded_weights(self) -> tuple[Floats, Floats]:
        fitted = self._fitted
        factors = recode(fitted.moments, self.recoding_)
        with fitted.weights(self._ridge(), with_held_out=bool(self.refit_held_out)) as weights:
            recoded = weights * factors[:, None]
        n_features = fitted.features.n_features
        intercepts = recoded[:, -1] if fitted.intercept else np.zeros(len(recoded))
        return recoded[:, :n_features], intercepts
