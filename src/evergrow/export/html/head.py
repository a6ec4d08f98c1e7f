"""What a classifier has learnt, as arrays that a page answers with and learns from.

The sums are the source of truth. If the model stores all examples and these take fewer bytes, the
page gets the examples and adds them up itself; otherwise it gets the triangle of the products of
features, and some of the stored examples to calibrate "unknown" on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear import RLSClassifier
from evergrow.estimators.linear.equations import Ridge
from evergrow.estimators.linear.fitted import FittedRLS
from evergrow.estimators.novelty import RejectingClassifier
from evergrow.estimators.novelty.fitted import FittedRejection
from evergrow.estimators.novelty.scores import SumsScorer
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.device import to_host
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError

Floats = npt.NDArray[np.float64]
Tensors = dict[str, npt.NDArray[Any]]

# Examples that "unknown" is calibrated on if not all are in the file.
_MOST_STORED = 500
# Sums of the stored examples that differ by more than this share are not those of the model.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Head:
    """A classifier of embeddings, for a page.

    Attributes
    ----------
    settings : dict
        Class names and hyperparameters, as JSON values.
    tensors : dict of str to ndarray
        Weights, and examples or sums.
    places : ndarray of shape (n_features,)
        The features of an embedding that take part, in ascending order.
    """

    settings: dict[str, Any]
    tensors: Tensors
    places: npt.NDArray[np.int64]


def read_head(model: Any) -> Head:
    """Read a fitted classifier; a ``TypeError`` or ``ValueError`` says why a page cannot hold it.

    Parameters
    ----------
    model : RLSClassifier, or RejectingClassifier of one
        Fitted on embeddings.
    """
    rejection = None
    inside = model
    if isinstance(model, RejectingClassifier):
        rejection = model._require_fitted("export")
        inside = rejection.estimator
    _check_exportable(inside, rejection)
    fitted: FittedRLS = inside._fitted
    ridge: Ridge = inside._ridge()
    places = np.arange(fitted.features.n_inputs)[inside._used_features()]
    moments = _used_moments(fitted.moments, places)
    stored = _Stored.of(fitted.holdout if rejection is None else rejection.holdout, moments, places)
    with fitted.solution(ridge, with_held_out=True) as solution:
        weights = np.array(solution.weights)[:, [*places, -1]]
    settings = {
        "classes": _class_names(inside),
        "class_examples": moments.class_examples.tolist(),
        "n_features": len(places),
        "penalty": ridge.penalty,
        "by_means": ridge.counts_means,
        "scoring": ridge.scoring,
        "recoding": inside.recoding_,
        "temperature": inside.temperature_,
        "novelty": None if rejection is None else _novelty(rejection, model),
    }
    tensors = {"weights": weights, **stored.tensors(moments)}
    # Files of arrays take them in the order of C.
    return Head(settings, {k: np.ascontiguousarray(v) for k, v in tensors.items()}, places)


def _check_exportable(inside: Any, rejection: FittedRejection | None) -> None:
    # A subclass, or another estimator, has other equations.
    if type(inside) is not RLSClassifier:
        raise InvalidTypeError(
            f"an HTML page can hold an RLSClassifier, alone or in a RejectingClassifier, but not a "
            f"{type(inside).__name__}: use 'evergrow fit --learner rls', or export to ONNX"
        )
    fitted = inside._require_fitted("export")
    reasons = {
        "it was saved with inference_only=True and cannot learn": fitted.fixed is not None,
        "standardize is True": bool(inside.standardize),
        "fit_intercept is False": not fitted.intercept,
        "it has random features": inside.n_random_features_ > 0,
        "its features are far from zero next to their spread": fitted.moments.shift is not None,
        "selection is HoldOut(refit=False)": not inside._learns_stored,
        "the measure of novelty is 'estimator'": rejection is not None
        and not isinstance(rejection.scorer, SumsScorer),
    }
    found = [reason for reason, holds in reasons.items() if holds]
    if found:
        raise InvalidInputError(
            f"an HTML page cannot hold this model: {found[0]}; fit it with the defaults"
        )


def _class_names(inside: RLSClassifier) -> list[str]:
    names = [str(label) for label in inside.classes_.tolist()]
    if len(set(names)) < len(names):
        raise InvalidInputError("an HTML page needs classes whose names differ as text")
    return names


def _used_moments(moments: Moments, places: npt.NDArray[np.int64]) -> Moments:
    """Return the sums over the features that take part, and the constant."""
    with_constant = np.append(places, moments.n_features - 1)
    return moments.with_features(with_constant)


def _novelty(rejection: FittedRejection, model: RejectingClassifier) -> dict[str, Any]:
    """Return how unknown examples are found."""
    scorer, calibration, level = rejection.scorer, rejection.calibration, model.level_
    summed = scorer.summed if isinstance(scorer, SumsScorer) else None
    return {
        "false_alarms": float(model.false_alarms),
        # Without linear scores the cosine alone decides.
        "penalty": None if summed is None or summed.linear is None else float(summed.penalty),
        "calibration": {
            "usual": calibration.usual.tolist(),
            "spreads": calibration.spreads.tolist(),
            "scales": calibration.scales.tolist(),
            "share": float(calibration.share),
            # JSON has no infinity.
            "level": level if np.isfinite(level) else None,
        },
    }


@dataclass(frozen=True, eq=False)
class _Stored:
    """The stored examples, with the features that take part, and whether they are all."""

    batch: Batch
    represented: Floats
    is_complete: bool

    @classmethod
    def of(cls, holdout: Holdout, moments: Moments, places: npt.NDArray[np.int64]) -> _Stored:
        if not len(holdout):
            nothing = Batch(np.zeros((0, len(places))), np.zeros(0, np.int32), np.zeros(0))
            return cls(nothing, np.zeros(0), False)
        plain, represented = holdout.batch, holdout.represented
        batch = Batch(plain.rows[:, places], plain.codes, plain.weights)
        is_complete = len(holdout) == moments.n_examples and _adds_up(batch, moments)
        found = cls(batch, represented, is_complete)
        return found if is_complete else found._thinned()

    def tensors(self, moments: Moments) -> Tensors:
        """Return the examples, with the sums unless these follow from the examples."""
        rows, n_features = self.batch.rows, moments.n_features
        single = rows.astype(np.float32)
        if (single == rows).all():
            rows = single  # type: ignore[assignment]
        found: Tensors = {"rows": rows, "codes": self.batch.codes}
        if (self.batch.weights != 1.0).any():
            found["row_weights"] = self.batch.weights
        if (self.represented != 1.0).any():
            found["represented"] = self.represented
        if self.is_complete and rows.nbytes <= 8 * n_features * (n_features + 1) // 2:
            return found
        if self.is_complete:
            return self._thinned().tensors(moments)
        gram = np.asarray(to_host(moments.gram))
        found["products"] = gram[np.triu_indices(n_features)]
        found["class_sums"] = moments.sums
        found["class_weights"] = moments.class_weights
        return found

    def _thinned(self) -> _Stored:
        """Return every n-th of the examples of each class, about as many as are needed."""
        order = np.argsort(self.batch.codes, kind="stable")
        step = -(-len(order) // _MOST_STORED)
        ordered = self.batch.codes[order]
        numbers = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        chosen = np.sort(order[numbers % step == 0])
        n_classes = int(self.batch.codes.max()) + 1
        counts = np.bincount(self.batch.codes, minlength=n_classes)
        kept = np.bincount(self.batch.codes[chosen], minlength=n_classes)
        factors = (counts / np.maximum(kept, 1))[self.batch.codes[chosen]]
        return _Stored(self.batch.at(chosen), self.represented[chosen] * factors, False)


def _adds_up(batch: Batch, moments: Moments) -> bool:
    """Whether the sums are those of the examples."""
    rows = np.column_stack([batch.rows, np.ones(len(batch.rows))])
    gram = np.triu(np.asarray(to_host(moments.gram)))
    found = np.triu((rows * batch.weights[:, None]).T @ rows)
    return bool(np.abs(found - gram).max() <= _ROUNDING * max(np.abs(gram).max(), 1.0))
