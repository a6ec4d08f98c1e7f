"""What least squares has learnt, as one value that is replaced whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear.feature_map import FeatureMap
from evergrow.estimators.linear.ridge import Ridge
from evergrow.estimators.linear.selection import (
    DEFAULT_TEMPERATURE,
    Selection,
    Validation,
    Wish,
    fit_temperature,
    select,
    suffices,
)
from evergrow.estimators.linear.solver import Solver
from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.held_out import HeldOut
from evergrow.estimators.sums.moments import Moments
from evergrow.estimators.sums.moments_file import moments_from_tensors, moments_to_tensors
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.labels import ClassList
from evergrow.storage.modelfile import check_array

__all__ = ["FittedRLS"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FixedWeights:
    """Weights that nothing can change any more, and what they were solved for."""

    weights: Floats
    ridge: Ridge
    temperature: float

    def weights_for(self, ridge: Ridge) -> Floats:
        """The weights, if these are the ones that are asked for."""
        if ridge != self.ridge:
            raise ValueError(
                f"the model was saved with inference_only=True and has only the weights for "
                f"regularization={self.ridge.penalty:g}, standardize={self.ridge.standardize}"
            )
        return self.weights


@dataclass(frozen=True, eq=False)
class FittedRLS:
    """Classes, feature map, sums over all examples, held-out examples and what they chose.

    The sums are over all examples, the held-out ones included; they are taken out again where
    something is chosen by them.
    """

    labels: ClassList
    features: FeatureMap
    intercept: bool
    moments: Moments
    held_out: HeldOut
    selection: Selection | None = None
    # What a model that was saved to predict only has instead of sums.
    fixed: FixedWeights | None = None
    solver: Solver = field(default_factory=Solver)
    # Temperatures for numbers that were set later; handed on from value to value.
    temperatures: dict[tuple[Ridge, float, int], float] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return self.features.n_inputs

    @property
    def can_learn(self) -> bool:
        """Whether the sums are there; not so after an inference-only file."""
        return self.fixed is None

    @cached_property
    def without_held_out(self) -> Moments:
        """Sums over all examples but the held-out ones."""
        if not len(self.held_out):
            return self.moments
        held = self._held_out_features
        return self.moments.add_all([Batch(held.rows, held.codes, held.weights, sign=-1)])

    @cached_property
    def _held_out_features(self) -> Batch:
        held = self.held_out.batch
        rows = self.features.features(held.rows, constant=self.intercept)
        return Batch(rows, held.codes, held.weights)

    @contextmanager
    def weights(self, ridge: Ridge, *, with_held_out: bool) -> Iterator[Floats]:
        """Weights of shape (n_classes, features), before recoding."""
        if self.fixed is not None:
            yield self.fixed.weights_for(ridge)
            return
        moments = self.moments if with_held_out else self.without_held_out
        # Where all that is left was held out there is nothing else to learn from.
        moments = moments if moments.n_examples else self.moments
        with self.solver.weights(moments, ridge) as weights:
            yield weights

    @cached_property
    def _stream(self) -> Validation | None:
        """Held-out examples to choose by, if there are enough."""
        if not suffices(self.held_out.counts):
            return None
        stream = Validation(self._held_out_features, self.without_held_out, self.moments)
        return stream if stream.trained.n_examples else None

    def choose(
        self, ridge: Callable[[float], Ridge], wish: Wish, *, again: bool = False
    ) -> FittedRLS:
        """With penalty, recoding and temperature chosen anew where that is due."""
        last = self.selection
        if last is not None and not again and not last.is_due(self.moments, wish):
            return self
        if self._stream is None:
            return self
        return replace(self, selection=select(self._stream, last, ridge, wish, again=again))

    def temperature(self, ridge: Ridge, recoding: float) -> float:
        """What scores are divided by, fitted for these numbers if there is anything to fit on."""
        if self.fixed is not None:
            return self.fixed.temperature
        last = self.selection
        asked = (ridge.penalty, recoding, ridge.standardize)
        if last is not None and (last.penalty, last.recoding, last.wish.standardize) == asked:
            return last.temperature
        # Fitted again when the examples have doubled, like the rest.
        key = (ridge, recoding, self.moments.n_examples.bit_length())
        if key not in self.temperatures:
            if self._stream is None:
                return DEFAULT_TEMPERATURE if last is None else last.temperature
            self.temperatures[key] = fit_temperature(self._stream, ridge, recoding)
        return self.temperatures[key]

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedRLS:
        """Share what never changes; what the solver keeps at hand is each one's own."""
        return replace(self, solver=Solver(), temperatures=dict(self.temperatures))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as plain arrays."""
        header, tensors = self.to_tensors()
        return (FittedRLS.from_tensors, (self.labels, header, tensors))

    def to_tensors(
        self, fixed: FixedWeights | None = None
    ) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Everything but the classes: numbers for a header, and named arrays.

        With ``fixed`` only what predicting needs.
        """
        fixed = self.fixed if fixed is None else fixed
        header: dict[str, Any] = {
            "features": asdict(self.features),
            "intercept": self.intercept,
            "held_out": {"seed": self.held_out.seed, "share": self.held_out.share},
            "selection": None if self.selection is None else _selection_to_json(self.selection),
            "fixed": None
            if fixed is None
            else {**asdict(fixed.ridge), "temperature": fixed.temperature},
        }
        if fixed is None:
            tensors = {**moments_to_tensors(self.moments), **self.held_out.to_tensors()}
        else:
            # No sums: those of a class with one example are that example.
            tensors = {
                "weights": fixed.weights,
                "class_weights": self.moments.class_weights,
                "class_examples": self.moments.class_examples,
            }
        if self.selection is not None:
            tensors["selection.class_examples"] = self.selection.class_examples
        return header, tensors

    @classmethod
    def from_tensors(
        cls, labels: ClassList, header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]
    ) -> FittedRLS:
        """Rebuild from :meth:`to_tensors`; a ``ModelFileError`` if anything does not fit."""
        features = _read_map(header.get("features"))
        intercept = header.get("intercept")
        if not isinstance(intercept, bool):
            raise ModelFileError("the model file does not say whether there is an intercept")
        sizes = (features.n_features + intercept, len(labels))
        selection = _read_selection(header.get("selection"), tensors, len(labels))
        if header.get("fixed") is not None:
            moments, fixed = _read_fixed(header["fixed"], tensors, sizes)
            nothing = HeldOut.none(1, 0).with_classes(len(labels))
            return cls(labels, features, intercept, moments, nothing, selection, fixed)
        moments = moments_from_tensors(tensors, *sizes)
        if moments.settled is None:
            raise ModelFileError("the model file lacks the array 'gram'")
        held_out = _read_held_out(header.get("held_out"), tensors, (features.n_inputs, len(labels)))
        return cls(labels, features, intercept, moments, held_out, selection)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ModelFileError("the model file has a damaged header: a number is out of range")
    return value


def _read_held_out(
    entry: Any, tensors: dict[str, npt.NDArray[Any]], sizes: tuple[int, int]
) -> HeldOut:
    if not isinstance(entry, dict):
        raise ModelFileError("the model file does not say what was held out")
    seed, share = _count(entry.get("seed")), _count(entry.get("share"))
    return HeldOut.from_tensors(tensors, sizes, share=share, seed=seed)


def _number(value: Any) -> float:
    if not isinstance(value, float) or not 0 <= value < float("inf"):
        raise ModelFileError("the model file has a damaged header: a choice is out of range")
    return value


def _read_map(entry: Any) -> FeatureMap:
    if not isinstance(entry, dict) or entry.get("kind") not in ("none", "relu", "rff"):
        raise ModelFileError("the model file has an unknown feature map")
    n_inputs, n_random, seed = (
        _count(entry.get(name)) for name in ("n_inputs", "n_random", "seed")
    )
    gamma = entry.get("gamma")
    if not isinstance(gamma, float) or not 0 < gamma < float("inf") or n_inputs < 1:
        raise ModelFileError("the model file has a damaged feature map")
    if (n_random > 0) != (entry["kind"] != "none"):
        raise ModelFileError("the model file has a damaged feature map")
    return FeatureMap(entry["kind"], n_inputs, n_random, seed, gamma)


def _read_fixed(
    entry: Any, tensors: dict[str, npt.NDArray[Any]], sizes: tuple[int, int]
) -> tuple[Moments, FixedWeights]:
    width, n_classes = sizes
    weights = check_array(tensors.get("weights"), "weights", np.float64, (n_classes, width))
    counts = check_array(tensors.get("class_weights"), "class_weights", np.float64, (n_classes,))
    examples = check_array(tensors.get("class_examples"), "class_examples", np.int64, (n_classes,))
    if (counts < 0).any() or not counts.any() or ((counts > 0) != (examples > 0)).any():
        raise ModelFileError("the model file is inconsistent: it has classes without weight")
    flags = [entry.get(name) for name in ("standardize", "intercept")] if entry else []
    if not isinstance(entry, dict) or not all(isinstance(flag, bool) for flag in flags):
        raise ModelFileError("the model file does not say what its weights were solved for")
    none = Moments.none(width, n_classes, gram=False)
    moments = replace(none, class_weights=counts, class_examples=examples)
    ridge, temperature = Ridge(_number(entry.get("penalty")), *flags), entry.get("temperature")
    if _number(temperature) == 0:
        raise ModelFileError("the model file has a damaged header: a choice is out of range")
    return moments, FixedWeights(weights, ridge, _number(temperature))


def _selection_to_json(chosen: Selection) -> dict[str, Any]:
    return {
        "penalty": chosen.penalty,
        "recoding": chosen.recoding,
        "temperature": chosen.temperature,
        "wish": asdict(chosen.wish),
        "n_examples": chosen.n_examples,
        "weight": chosen.weight,
    }


def _read_selection(
    entry: Any, tensors: dict[str, npt.NDArray[Any]], n_classes: int
) -> Selection | None:
    if entry is None:
        return None
    if not isinstance(entry, dict):
        raise ModelFileError("the model file has a damaged header: its choices")
    penalty, recoding, temperature = (
        _number(entry.get(name)) for name in ("penalty", "recoding", "temperature")
    )
    if recoding > 1 or temperature == 0:
        raise ModelFileError("the model file has a damaged header: a choice is out of range")
    wish = entry.get("wish")
    names = {"penalty", "recoding", "standardize"}
    if not isinstance(wish, dict) or set(wish) != names or type(wish["standardize"]) is not bool:
        raise ModelFileError("the model file has a damaged header: what was asked for")
    penalty_asked, recoding_asked = (
        None if wish[name] is None else _number(wish[name]) for name in ("penalty", "recoding")
    )
    asked = Wish(penalty_asked, recoding_asked, wish["standardize"])
    then = check_array(
        tensors.get("selection.class_examples"), "selection.class_examples", np.int64, (None,)
    )
    if len(then) > n_classes or (then < 0).any():
        raise ModelFileError("the model file is inconsistent: it chose for unknown classes")
    n_examples, weight = _count(entry.get("n_examples")), _number(entry.get("weight"))
    return Selection(penalty, recoding, temperature, asked, n_examples, weight, then)
