"""What least squares has learnt, as one value that is replaced whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.batches import Batch
from evergrow.errors import ModelFileError
from evergrow.held_out import HeldOut
from evergrow.labels import ClassList
from evergrow.linear.feature_map import FeatureMap
from evergrow.linear.ridge import Ridge
from evergrow.linear.selection import Selection, Validation, select
from evergrow.linear.solver import Solver
from evergrow.modelfile import check_array
from evergrow.moments import Moments

__all__ = ["FittedRLS"]

Floats = npt.NDArray[np.float64]


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
    # Weights of a model that was saved to predict only; its sums have no Gram matrix.
    fixed_weights: Floats | None = None
    solver: Solver = field(default_factory=Solver)

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return self.features.n_inputs

    @property
    def can_learn(self) -> bool:
        """Whether the sums are there; not so after an inference-only file."""
        return self.fixed_weights is None

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
        if self.fixed_weights is not None:
            yield self.fixed_weights
            return
        moments = self.moments if with_held_out else self.without_held_out
        with self.solver.weights(moments, ridge) as weights:
            yield weights

    def choose(
        self,
        ridge: Callable[[float], Ridge],
        *,
        penalty: float | None,
        recoding: float | None,
        again: bool = False,
    ) -> FittedRLS:
        """With penalty, recoding and temperature chosen anew where that is due."""
        if not again and self.selection is not None and not self.selection.is_due(self.moments):
            return self
        if not len(self.held_out):
            return self
        held = Validation(self._held_out_features, self.without_held_out, self.moments)
        chosen = select(
            held, self.selection, ridge, penalty=penalty, recoding=recoding, again=again
        )
        return replace(self, selection=chosen)

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedRLS:
        """Share: nothing in here ever changes, but for what the solver keeps at hand."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as plain arrays."""
        header, tensors = self.to_tensors()
        return (FittedRLS.from_tensors, (self.labels, header, tensors))

    def to_tensors(
        self, fixed_weights: Floats | None = None
    ) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Everything but the classes: numbers for a header, and named arrays.

        With ``fixed_weights`` only what predicting needs.
        """
        chosen, fixed = self.selection, self.features
        header = {
            "features": {
                "kind": fixed.kind,
                "n_inputs": fixed.n_inputs,
                "n_random": fixed.n_random,
                "seed": fixed.seed,
                "gamma": fixed.gamma,
            },
            "intercept": self.intercept,
            "held_out": {"seed": self.held_out.seed, "share": self.held_out.share},
            "selection": None
            if chosen is None
            else {
                "penalty": chosen.penalty,
                "recoding": chosen.recoding,
                "temperature": chosen.temperature,
                "n_examples": chosen.n_examples,
            },
        }
        if fixed_weights is None:
            fixed_weights = self.fixed_weights
        moments = self.moments.to_tensors()
        if fixed_weights is not None:
            # Class sums stay: they are small and say how large a class mean is.
            moments = {n: a for n, a in moments.items() if n not in ("gram", "class_grams")}
            tensors = {**moments, "weights": fixed_weights}
        else:
            tensors = {**moments, **self.held_out.to_tensors()}
        if chosen is not None:
            tensors["selection.class_examples"] = chosen.class_examples
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
        width, n_classes = features.n_features + intercept, len(labels)
        moments = Moments.from_tensors(tensors, width, n_classes)
        weights = None
        if "weights" in tensors:
            weights = check_array(tensors["weights"], "weights", np.float64, (n_classes, width))
        elif moments.settled is None:
            raise ModelFileError("the model file lacks the array 'gram'")
        held_out = _read_held_out(header.get("held_out"), tensors, (features.n_inputs, n_classes))
        selection = _read_selection(header.get("selection"), tensors, n_classes)
        return cls(labels, features, intercept, moments, held_out, selection, weights)


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
    if "weights" in tensors:
        return HeldOut.none(share, seed)
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
    then = check_array(
        tensors.get("selection.class_examples"), "selection.class_examples", np.int64, (None,)
    )
    if len(then) > n_classes:
        raise ModelFileError("the model file is inconsistent: it chose for unknown classes")
    return Selection(penalty, recoding, temperature, _count(entry.get("n_examples")), then)
