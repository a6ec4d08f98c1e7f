"""What least squares has learnt, as one immutable value, and how it changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear.equations import Ridge
from evergrow.estimators.linear.feature_map import FeatureMap, FeatureRows, ReLU
from evergrow.estimators.linear.leave_one_out import LeftOutExamples, Validation
from evergrow.estimators.linear.request import RLSRequest
from evergrow.estimators.linear.scoring import ClassScale
from evergrow.estimators.linear.selection import (
    DEFAULT_TEMPERATURE,
    Selection,
    SelectionRequest,
    are_enough,
    fit_temperature,
    select,
)
from evergrow.estimators.linear.solver import Solution, Solver
from evergrow.estimators.sums.accumulation import add_examples, first_shift
from evergrow.estimators.sums.changes import FittedSums
from evergrow.estimators.sums.device_scores import DeviceLinearScores
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.device import Device
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Flag, Number
from evergrow.foundation.rows import float_blocks
from evergrow.storage.models.codec import (
    MOST_COUNTED,
    Array,
    ClassNames,
    Fields,
    Nested,
    decode,
    encode,
)

Floats = npt.NDArray[np.float64]

# Bytes of scores computed at once.
_SCORE_BYTES = 16 << 20
# Limits on the examples that a choice by leave-one-out is judged on: the scores that are computed
# for each penalty, and the products of features that solving takes; but not fewer than the last.
# The penalty is selected only when the number of examples has doubled, so it may take longer.
_SCORES_JUDGED = 1_000_000
_PRODUCTS_JUDGED = 8_000_000_000
_PRODUCTS_JUDGED_FOR_PENALTY = 32_000_000_000
_FEWEST_JUDGED = 300
# No shift of a model file is larger.
_LARGEST = 1e141


@dataclass(frozen=True, eq=False)
class FixedWeights:
    """The weights of a model that cannot learn any more, and the problem they solve."""

    weights: Floats
    own_scores: Floats
    ridge: Ridge
    temperature: float
    class_weights: Floats
    class_examples: npt.NDArray[np.int64]
    shift: Floats | None = None

    _stored: ClassVar[Fields] = {
        "weights": Array(np.float64, ("classes", "features")),
        "own_scores": Array(np.float64, ("classes",)),
        "ridge": Nested(Ridge),
        "temperature": [Number(0.0, open_low=True)],
        "class_weights": Array(np.float64, ("classes",), 0.0),
        "class_examples": Array(np.int64, ("classes",), 0, total=MOST_COUNTED),
        "shift": Array(np.float64, ("features",), -_LARGEST, _LARGEST, optional=True),
    }

    def solution_for(self, ridge: Ridge) -> Solution:
        """Return the weights; a ``ValueError`` if they solve another problem."""
        if replace(ridge, columns=None) != self.ridge:
            raise InvalidInputError(
                f"the model was saved with inference_only=True and has only the weights for "
                f"regularization={self.ridge.penalty:g}, standardize={self.ridge.standardize}, "
                f"scoring={self.ridge.scoring!r}"
            )
        return Solution(self.weights, self.own_scores)


@dataclass(frozen=True, eq=False)
class FittedRLS(FittedSums):
    """Classes, sums over all examples, feature map, stored examples and the selection.

    The sums include the stored examples. To select parameters these are left out in turn, or held
    out: subtracted all at once.
    """

    features: FeatureMap
    intercept: bool
    holdout: Holdout
    selection: Selection | None = None
    # Replaces the sums in a model that was saved with inference_only=True.
    fixed: FixedWeights | None = None
    solver: Solver = field(default_factory=Solver)
    # Temperatures for parameters that were set later; passed on from value to value.
    temperatures: dict[tuple[Ridge, float, int], float] = field(default_factory=dict)

    _stored: ClassVar[Fields] = {
        "labels": ClassNames(),
        "features": Nested(FeatureMap),
        "intercept": [Flag()],
        "moments": Nested(Moments, optional=True),
        "holdout": Nested(Holdout, optional=True),
        "selection": Nested(Selection, optional=True),
        "fixed": Nested(FixedWeights, optional=True),
    }

    def stored_fields(self) -> dict[str, Any]:
        """Return no sums with fixed weights: those of a class of one example would reveal it."""
        return {} if self.fixed is None else {"moments": None, "holdout": None}

    @classmethod
    def from_stored(cls, fields: dict[str, Any]) -> FittedRLS:
        """Rebuild from a model file."""
        fixed, n_classes = fields["fixed"], len(fields["labels"])
        if (fields["moments"] is None or fields["holdout"] is None) != (fixed is not None):
            raise InvalidInputError("it needs sums or fixed weights")
        if fixed is not None:
            n_features, shift = fixed.weights.shape[1], fixed.shift
            nothing = Moments.none(n_features, n_classes, gram=False, shift=shift)
            moments = replace(
                nothing, class_weights=fixed.class_weights, class_examples=fixed.class_examples
            )
            moments.check_stored()
            fields |= {"moments": moments, "holdout": Holdout.none(1, 0).with_classes(n_classes)}
        return cls(**fields)

    def check_stored(self) -> None:
        """Raise a ``ValueError`` if the parts do not suit each other."""
        n_inputs, n_features = self.features.n_inputs, self.features.n_features + self.intercept
        if self.moments.n_features != n_features or self.holdout.n_features not in (None, n_inputs):
            raise InvalidInputError(f"its sums are not those of {n_features} features")
        if self.fixed is None and self.moments.settled is None:
            raise InvalidInputError("it has no products of features")
        if self.selection is not None and len(self.selection.class_examples) > len(self.labels):
            raise InvalidInputError("its selection has too many classes")

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return self.features.n_inputs

    @property
    def row_map(self) -> FeatureRows:
        """From inputs to the features that are added up."""
        return FeatureRows(self.features, self.intercept)

    def extend(self, labels: ClassList, new: Batch, request: RLSRequest) -> FittedRLS:
        """Add examples, inputs of any type; ``labels`` are the classes known afterwards."""
        moments = self.moments.with_classes(len(labels))
        holdout = self.holdout.with_classes(len(labels))
        add = partial(add_examples, row_map=self.row_map)
        if not request.needs_examples:
            moments, _ = add(moments, new)
        else:
            judged_by = request.judged_by
            drawn = holdout.draw(
                new.codes,
                labels.classes.tolist(),
                every=judged_by.every,
                max_held_out=judged_by.max_stored,
                n_first=judged_by.n_first,
            )
            counts = moments.class_examples + np.bincount(new.codes, minlength=len(labels))
            if counts.max() > drawn.share and self._can_widen(request):
                return self._widen(request, new).extend(labels, new, request)
            places = drawn.places
            moments, rows = add(moments, new, places=places)
            holdout = holdout.with_drawn(drawn, rows, new.weights[places])
        moments.check_finite(self.moments)
        return replace(self, labels=labels, moments=moments, holdout=holdout)._select(request)

    def forget(self, gone: Batch, request: RLSRequest) -> FittedRLS:
        """Remove examples; a ``ValueError`` if they cannot have been learnt."""
        left = super().forget(gone, request)
        return replace(left, holdout=self.holdout.remove(gone)[0])._select(request)

    def relabel(self, labels: ClassList, columns: list[int], request: RLSRequest) -> FittedRLS:
        """Replace the classes: class ``k`` becomes class ``columns[k]``, -1 if it is removed."""
        holdout, selection = self.holdout.relabel(columns, len(labels)), self.selection
        changed = super().relabel(labels, columns, request)
        if len(holdout) < changed.moments.n_examples and self._can_widen(request):
            return self._widen(request).relabel(labels, columns, request)
        if selection is not None:
            selection = replace(selection, class_examples=changed.moments.class_examples)
        return replace(changed, holdout=holdout, selection=selection)._select(request, force=True)

    def merge(self, other: FittedRLS, request: RLSRequest) -> FittedRLS:
        """Return what one model would have learnt from the examples of both."""
        labels, columns = self.labels.extend(other.labels.classes)
        holdout = self.holdout.merged(
            other.holdout, columns.tolist(), len(labels), request.judged_by.max_stored
        )
        n_examples = self.moments.n_examples + other.moments.n_examples
        if self.features.n_random < other.features.n_random:
            return self._widen(request, like=other.features).merge(other, request)
        if len(holdout) < n_examples and self._can_widen(request):
            return self._widen(request).merge(other, request)
        if other.features.n_random < self.features.n_random:
            other = other._widen(request, like=self.features)
        both = super().merge(other, request)
        return replace(both, holdout=holdout)._select(request, force=True)

    def differences(self, other: FittedRLS) -> list[str]:
        """Return what must be equal to merge two models, but is not."""
        mine, theirs = self.features, other.features
        # A model that has all its examples takes over the random features of the other.
        narrow = min(self, other, key=lambda one: one.features.n_random)
        widens = mine.with_inputs and not narrow.features.n_random and narrow.has_all_examples
        pairs: dict[str, tuple[Any, Any]] = {
            "the number of features": (mine.n_inputs, theirs.n_inputs),
            "fit_intercept": (self.intercept, other.intercept),
            "random features next to the input": (mine.with_inputs, theirs.with_inputs),
            "the number of random features": (
                mine.n_random,
                mine.n_random if widens else theirs.n_random,
            ),
            "the kind of random features": (mine.kind, theirs.kind),
            "the seed of the random features": (mine.seed, mine.seed if widens else theirs.seed),
            "gamma of the random features": (mine.gamma, mine.gamma if widens else theirs.gamma),
            "keep_class_statistics": (
                self.moments.class_settled is not None,
                other.moments.class_settled is not None,
            ),
        }
        return [f"{name} ({a} and {b})" for name, (a, b) in pairs.items() if a != b]

    @property
    def has_all_examples(self) -> bool:
        """Whether all examples that were learnt are stored."""
        return len(self.holdout) == self.moments.n_examples

    def _can_widen(self, request: RLSRequest) -> bool:
        """Whether random features are still to be added, and can be."""
        features = self.features
        wanted = features.with_inputs and not features.n_random
        return wanted and self.has_all_examples and request.n_affordable(features.n_inputs) > 0

    def _widen(
        self, request: RLSRequest, new: Batch | None = None, like: FeatureMap | None = None
    ) -> FittedRLS:
        """Add random features, now that all examples are still stored.

        ``new`` are the first examples if none is stored, ``like`` are features to take over.
        """
        stored, features = self.holdout.batch, self.features
        if like is None:
            first = new if new is not None and not len(self.holdout) else stored
            wanted = ReLU(request.n_affordable(features.n_inputs))
            like = FeatureMap.of(wanted, features.seed, first)
        features = replace(like, with_inputs=True)
        first = stored if new is None or len(self.holdout) else new
        moments = no_moments(
            features,
            first.rows,
            len(self.labels),
            intercept=self.intercept,
            per_class=self.moments.class_settled is not None,
        )
        wide = replace(self, features=features, moments=moments, solver=Solver(), temperatures={})
        if not len(self.holdout):
            return wide
        return replace(wide, moments=add_examples(moments, stored, wide.row_map)[0])

    def complete(self, wanted: SelectionRequest) -> SelectionRequest:
        """Return a request that includes random features next to the inputs, if there are any."""
        features = self.features
        if not features.with_inputs or not features.n_random:
            return wanted
        quarter = features.n_random // 4
        widths = (quarter, quarter, features.n_random - 2 * quarter)
        inputs = wanted.blocks or (features.n_inputs,)
        return replace(wanted, blocks=(*inputs, *widths), n_random_blocks=len(widths))

    def _select(self, request: RLSRequest, *, force: bool = False) -> FittedRLS:
        """Select the parameters that are "auto" again, if it is time to and examples suffice."""
        wanted, last = self.complete(request.selection), self.selection
        if not wanted.needs_examples:
            return self
        is_due = force or last is None or last.is_due(self.moments, wanted)
        if not is_due or not len(self.holdout):
            return self
        with_penalty = force or last is None or last.penalty_is_due(self.moments, wanted)
        validation = self._validation(
            wanted, _PRODUCTS_JUDGED_FOR_PENALTY if with_penalty else _PRODUCTS_JUDGED
        )
        if not are_enough(validation, wanted.rule):
            return self
        selection = select(validation, last, request.ridge, wanted, force=force)
        return replace(self, selection=selection)

    @cached_property
    def without_held_out(self) -> Moments:
        """Sums over all examples except the held-out ones."""
        if not len(self.holdout):
            return self.moments
        return self.moments.add_all([self._held_out_features.negated()])

    @cached_property
    def _held_out_features(self) -> Batch:
        return self._features(self.holdout.batch)

    def _features(self, inputs: Batch) -> Batch:
        rows = self.features.features(inputs.rows, constant=self.intercept)
        return Batch(rows, inputs.codes, inputs.weights)

    @contextmanager
    def solution(self, ridge: Ridge, *, with_held_out: bool) -> Iterator[Solution]:
        """Context manager: the weights, before recoding."""
        if self.fixed is not None:
            yield self.fixed.solution_for(ridge)
            return
        moments = self.moments if with_held_out else self.without_held_out
        # If only held-out examples are left, they are all there is to learn from.
        moments = moments if moments.n_examples else self.moments
        with self.solver.solution(moments, ridge) as solution:
            yield solution

    def _validation(
        self, request: SelectionRequest, n_products: int = _PRODUCTS_JUDGED
    ) -> Validation:
        """Return the stored examples to judge choices by."""
        if request.rule == "hold-out":
            held = self.moments.shifted(self._held_out_features)
            return Validation(held, self.without_held_out, self.moments)
        affordable = min(
            _SCORES_JUDGED // len(self.labels), n_products // self.moments.n_features**2
        )
        most = max(_FEWEST_JUDGED, affordable)
        places = self.holdout.balanced_places(most)
        held = self._features(self.holdout.batch.at(places))
        return LeftOutExamples.of(self.moments.shifted(held), self.moments)

    def temperature(self, ridge: Ridge, recoding: float, request: SelectionRequest) -> float:
        """Return the number that scores are divided by, fitted on stored examples if possible."""
        if self.fixed is not None:
            return self.fixed.temperature
        last = self.selection
        asked = (ridge.penalty, recoding, ridge.standardize, ridge.scoring)
        if last is not None and asked == (
            last.penalty,
            last.recoding,
            last.request.standardize,
            last.request.scoring,
        ):
            return last.temperature
        # Fitted again when the number of examples has doubled, like the other parameters.
        key = (ridge, recoding, self.moments.n_examples.bit_length())
        if key not in self.temperatures:
            validation = self._validation(request) if len(self.holdout) else None
            if validation is None or not are_enough(validation, request.rule):
                return DEFAULT_TEMPERATURE if last is None else last.temperature
            self.temperatures[key] = fit_temperature(validation, ridge, recoding)
        return self.temperatures[key]

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedRLS:
        """Share everything immutable; solver and temperatures are caches of each copy."""
        return replace(self, solver=Solver(), temperatures=dict(self.temperatures))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as plain arrays, without the caches."""
        return decode, (FittedRLS, *encode(self))


def no_moments(
    features: FeatureMap, X: npt.NDArray[Any], n_classes: int, *, intercept: bool, per_class: bool
) -> Moments:
    """Return the sums over no examples; with an intercept their shift suits the first rows.

    Without one a shift would have an effect on the weights.
    """
    plain = partial(features.features, constant=False)
    shift = first_shift(X, plain) if intercept and len(X) else None
    return Moments.none(
        features.n_features + intercept,
        n_classes,
        gram=True,
        per_class=per_class,
        shift=None if shift is None else np.append(shift, 0.0),
    )


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Weights times features, times a factor per class: all that predicting needs.

    Attributes
    ----------
    features : FeatureMap
        From inputs to features.
    weights : ndarray of shape (n_classes, n_features) or (n_classes, n_features + 1)
        The last column is the intercept if there is one.
    scale : ClassScale
        Offset and factor of each class.
    intercept : bool
        Whether there is an intercept.
    shift : ndarray of shape (n_features,) or None
        What is subtracted from the features first.
    """

    features: FeatureMap
    weights: Floats
    scale: ClassScale
    intercept: bool
    shift: Floats | None

    def blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows, scores) a block of rows at a time [Camoriano2017 Eq. 17]."""
        n_features = self.features.n_features
        max_rows = max(64, min(16384, _SCORE_BYTES // (8 * len(self.weights))))
        for rows, block in float_blocks(X, max_rows):
            features = self.features.features(block, constant=False)
            if self.shift is not None:
                features -= self.shift
            scores = features @ self.weights[:, :n_features].T
            if self.intercept:
                scores += self.weights[:, -1] - self.scale.offsets
            scores *= self.scale.factors
            scores[:, self.scale.factors == 0] = -np.inf
            yield rows, scores

    def on(self, device: Device) -> DeviceLinearScores:
        """Return the same scores on a GPU."""
        factors, n_features = self.scale.factors, self.features.n_features
        offsets = self.weights[:, -1] - self.scale.offsets if self.intercept else 0.0
        return DeviceLinearScores.of(
            device,
            self.weights[:, :n_features] * factors[:, None],
            np.where(factors == 0, -np.inf, offsets * factors),
            shift=self.shift,
            rule=FeatureRows(self.features, constant=False).rule(self.features.n_inputs),
        )

    def copy(self) -> LinearScores:
        """Return the same scores with weights of their own."""
        return replace(self, weights=np.array(self.weights))
