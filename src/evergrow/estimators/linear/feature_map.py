"""Fixed random features: a projection made from the seed, then a nonlinearity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.sums.core_accumulator import FeatureRule
from evergrow.estimators.sums.moments import Batch
from evergrow.foundation.engine import Arrays, Job, current_engine
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.extras import __version__
from evergrow.foundation.params import (
    Choice,
    Flag,
    Integer,
    MemorySize,
    Nothing,
    Number,
    OneOf,
    Rule,
    Value,
)
from evergrow.foundation.rows import float_blocks
from evergrow.foundation.threads import blas_threads
from evergrow.storage.models.codec import MOST_COUNTED, Fields
from evergrow.storage.shards.parts import RowPart, content_name, row_parts, rows_to_share

Floats = npt.NDArray[np.float64]

# Bytes of features computed at once.
BLOCK_BYTES = 64 << 20

_NUMBER: list[Rule] = [Integer(1, 1_000_000)]


@dataclass(frozen=True, repr=False)
class ReLU(Value):
    """Random features in place of the input: projections with negative values set to zero.

    A linear model on them approximates one with the arc-cosine kernel of Cho and Saul (2009). They
    need no scale parameter: if the input doubles, the features double. Pass them as `features` to
    :class:`~evergrow.RLSClassifier`.

    Parameters
    ----------
    n : int, default=4096
        Number of random features. With a few thousand, least squares is about as accurate as kernel
        methods. Memory and time are quadratic in their number.

    Examples
    --------
    >>> from evergrow.estimators import ReLU, RLSClassifier
    >>> model = RLSClassifier(features=ReLU(100), random_state=0)
    >>> model.fit([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1]).predict([[1, 0]])
    array([1])
    """

    n: int = 4096

    _rules: ClassVar[dict[str, list[Rule]]] = {"n": _NUMBER}


@dataclass(frozen=True, repr=False)
class RFF(Value):
    """Random Fourier features, which approximate the kernel ``exp(-gamma |x - y|^2)``.

    The method is that of Rahimi and Recht (2007). They replace the input. Pass them as `features`
    to :class:`~evergrow.RLSClassifier`.

    Parameters
    ----------
    n : int, default=4096
        Number of random features, as in :class:`ReLU`.
    gamma : float or "scale", default="scale"
        Inverse width of the kernel. ``"scale"`` is 1 / (n_features * variance) of the first data,
        as in scikit-learn. Pass a number if the model must not depend on which data came first, or
        if models will be merged.

    Examples
    --------
    >>> from evergrow.estimators import RFF, RLSClassifier
    >>> model = RLSClassifier(features=RFF(100, gamma=1.0), random_state=0)
    >>> model.fit([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1]).predict([[1, 0]])
    array([1])
    """

    n: int = 4096
    gamma: float | Literal["scale"] = "scale"

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n": _NUMBER,
        "gamma": [Number(0.0, open_low=True), Choice(("scale",))],
    }


@dataclass(frozen=True, repr=False)
class Auto(Value):
    """The input, followed by as many random features (:class:`ReLU`) as help.

    There are none until more examples were learnt than are stored. From then on leave-one-out
    predictions show how many help; it is selected again whenever the number of examples has
    doubled. Pass it as `features` to :class:`~evergrow.RLSClassifier`; ``features="auto"`` is
    ``Auto()``.

    Parameters
    ----------
    max_memory : str or int, default="256MiB"
        Maximum size of the Gram matrix, which takes 8 bytes times the square of the number of
        features, random ones included. 256 MiB are enough for 5792 features. Computing the weights
        takes about three times as much memory.

    Examples
    --------
    >>> from evergrow.estimators import Auto, RLSClassifier
    >>> model = RLSClassifier(features=Auto(max_memory="1MiB"), random_state=0)
    >>> model.fit([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1]).n_random_features_
    0
    """

    max_memory: str | int = "256MiB"

    _rules: ClassVar[dict[str, list[Rule]]] = {"max_memory": [MemorySize()]}


Features: TypeAlias = ReLU | RFF | Auto | None
FEATURES: tuple[type[Value], ...] = (ReLU, RFF, Auto)
FEATURE_RULES: list[Rule] = [Nothing(), Choice(("auto",)), OneOf(FEATURES)]
_AUTO = Auto()


def features_of(value: Literal["auto"] | Features) -> Features:
    """Return the features of a parameter, given by their short form or as a value."""
    return _AUTO if isinstance(value, str) else value


@dataclass(frozen=True)
class FeatureMap:
    """A map from inputs to features.

    ``kind`` is "none", "relu" or "rff"; the projection depends on the seed alone. The random
    features replace the inputs or, ``with_inputs``, follow them. In the latter case there may be
    none of them yet.
    """

    kind: str
    n_inputs: int
    n_random: int
    seed: int
    gamma: float = 1.0
    with_inputs: bool = False

    _stored: ClassVar[Fields] = {
        "kind": [Choice(("none", "relu", "rff"))],
        "n_inputs": [Integer(1, MOST_COUNTED)],
        "n_random": [Integer(0, MOST_COUNTED)],
        "seed": [Integer(0, 2**63 - 1)],
        "gamma": [Number(0.0, open_low=True)],
        "with_inputs": [Flag()],
    }

    def check_stored(self) -> None:
        """Raise a ``ValueError`` for random features of no kind."""
        if (self.n_random > 0 or self.with_inputs) != (self.kind != "none"):
            raise InvalidInputError("its random features do not suit its feature map")

    @classmethod
    def plain(cls, n_inputs: int) -> FeatureMap:
        """Return the map that leaves inputs as they are."""
        return cls("none", n_inputs, 0, 0)

    @classmethod
    def of(cls, wanted: Features, seed: int, first: Batch) -> FeatureMap:
        """Return the map of a parameter for the first examples."""
        n_inputs, gamma = first.rows.shape[1], getattr(wanted, "gamma", 1.0)
        if isinstance(wanted, RFF):
            gamma = inverse_spread(first.rows, first.weights) if gamma == "scale" else float(gamma)
            return cls("rff", n_inputs, wanted.n, seed, gamma)
        if isinstance(wanted, ReLU):
            return cls("relu", n_inputs, wanted.n, seed)
        if isinstance(wanted, Auto):
            return cls("relu", n_inputs, 0, seed, with_inputs=True)
        return cls.plain(n_inputs)

    @property
    def parameter(self) -> Features:
        """The parameter that has this map."""
        if self.kind == "none":
            return None
        if self.with_inputs:
            return Auto()
        return ReLU(self.n_random) if self.kind == "relu" else RFF(self.n_random, self.gamma)

    @property
    def n_copied(self) -> int:
        """How many of the first features are inputs."""
        return self.n_inputs if self.kind == "none" or self.with_inputs else 0

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.n_copied + self.n_random

    @cached_property
    def projection(self) -> Floats:
        """Directions, one per row."""
        n_rows = self.n_random if self.kind == "relu" else -(-self.n_random // 2)
        rows: Floats = _core.random_projection(self.seed, n_rows, self.n_inputs, blas_threads())
        # Scaled so that the features of x have about the length of x (relu) or length 1 (rff).
        rows *= np.sqrt(2 / self.n_random) if self.kind == "relu" else np.sqrt(2 * self.gamma)
        return rows

    def features(self, rows: npt.NDArray[Any], *, constant: bool) -> Floats:
        """Compute the features of some rows; ``constant`` appends the feature 1."""
        mapped = np.empty((len(rows), self.n_features + constant))
        inputs, n_copied = np.asarray(rows, dtype=np.float64), self.n_copied
        mapped[:, :n_copied] = inputs[:, :n_copied]
        if self.n_random:
            _APPLY[self.kind](self, inputs, mapped[:, n_copied : self.n_features])
        mapped[:, self.n_features :] = 1.0
        return mapped


@dataclass(frozen=True)
class FeatureRows:
    """The map from blocks of inputs to the features that are added to sums."""

    features: FeatureMap
    constant: bool

    @property
    def max_rows(self) -> int:
        """Largest number of rows to map at once."""
        return max(256, BLOCK_BYTES // (8 * (self.features.n_features + self.constant)))

    def rule(self, n_inputs: int) -> FeatureRule:
        """Return the same map for the core and for GPUs."""
        fixed = self.features
        if not fixed.n_random:
            return FeatureRule(n_inputs, fixed.n_copied, constant=self.constant)
        return FeatureRule(
            n_inputs,
            fixed.n_copied,
            "relu" if fixed.kind == "relu" else "rff",
            fixed.projection,
            fixed.n_random,
            self.constant,
        )

    def __call__(self, block: npt.NDArray[Any]) -> Floats:
        """Compute the features of a block of rows."""
        return self.features.features(block, constant=self.constant)


def _apply_relu(fixed: FeatureMap, rows: Floats, out: Floats) -> None:
    np.maximum(rows @ fixed.projection.T, 0.0, out=out)


def _apply_rff(fixed: FeatureMap, rows: Floats, out: Floats) -> None:
    phases = rows @ fixed.projection.T
    # A cosine and a sine per direction.
    scale = np.sqrt(2 / fixed.n_random)
    n_cosines = phases.shape[1]
    np.multiply(np.cos(phases), scale, out=out[:, :n_cosines])
    np.multiply(np.sin(phases[:, : fixed.n_random - n_cosines]), scale, out=out[:, n_cosines:])


_APPLY = {"relu": _apply_relu, "rff": _apply_rff}


def inverse_spread(X: npt.NDArray[Any], weights: Floats) -> float:
    """Return 1 / (n_features * variance of all entries), or 1 if the entries are constant.

    The width of random Fourier features depends on all inputs, so this is a separate pass before
    the one that adds them up.
    """
    _, first = next(float_blocks(X, 1))
    total, squares = _sums(X, weights, float(first[0].mean(dtype=np.float64)))
    mean = total / weights.sum()
    variance = squares / weights.sum() - mean**2
    return float(1.0 / (X.shape[1] * variance)) if variance > 1e-12 * mean**2 else 1.0


def _sums(X: npt.NDArray[Any], weights: Floats, origin: float) -> Floats:
    engine = current_engine()
    parts = [] if engine is None else row_parts(X)
    if engine is None or len(parts) < 2:
        return _sums_of(X, weights, origin)
    name = (
        content_name("spread", __version__, X, weights, origin) if engine.has_checkpoints else None
    )
    shared = (rows_to_share(X), weights, origin)
    job = Job(sum_part, parts, shared, "measuring the spread", name=name)
    return engine.reduce(job, join_parts)["sums"]


def _sums_of(X: npt.NDArray[Any], weights: Floats, origin: float) -> Floats:
    # Measured from one of the entries: squares of large numbers lose their differences.
    sums = np.zeros(2)
    for rows, block in float_blocks(X):
        values = np.asarray(block, dtype=np.float64) - origin
        sums[0] += weights[rows] @ values.mean(axis=1)
        sums[1] += weights[rows] @ (values**2).mean(axis=1)
    return sums


def sum_part(
    part: RowPart, matrix: npt.NDArray[Any] | None, weights: Floats, origin: float
) -> Arrays:
    """Sum the entries of some rows, and their squares."""
    return {"sums": _sums_of(part.read(matrix), weights[part.rows], origin)}


def join_parts(first: Arrays, second: Arrays) -> Arrays:
    """Add the sums over two parts."""
    return {"sums": first["sums"] + second["sums"]}
