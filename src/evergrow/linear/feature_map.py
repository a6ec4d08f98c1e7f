"""Fixed random features: a projection made from the seed, then a nonlinearity."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.blocks import float_blocks
from evergrow.errors import ModelFileError
from evergrow.params import Number, Rule, check_parameters

__all__ = ["RFF", "FeatureMap", "MapIsKnown", "ReLU", "map_to_json", "resolve_map"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ReLU:
    """Random projections of which only the positive part is kept.

    Their products approach the arc-cosine kernel of Cho and Saul (2009). They need no scale: twice
    the input is twice the features.

    Examples
    --------
    >>> from evergrow.linear import ReLU, RLSClassifier
    >>> model = RLSClassifier(n_random_features=100, feature_map=ReLU(), random_state=0)
    >>> model.fit([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1]).predict([[1, 0]])
    array([1])
    """

    name: ClassVar[str] = "relu"


@dataclass(frozen=True)
class RFF:
    """Random Fourier features of Rahimi and Recht (2007), for the kernel ``exp(-gamma |x - y|^2)``.

    Parameters
    ----------
    gamma : float or "scale", default="scale"
        Width of the kernel. ``"scale"`` is 1 / (n_features * variance) of the first data, as in
        scikit-learn; give a number for a model that does not depend on which data came first, and
        for models that are to be merged.

    Examples
    --------
    >>> from evergrow.linear import RFF, RLSClassifier
    >>> model = RLSClassifier(n_random_features=100, feature_map=RFF(gamma=1.0), random_state=0)
    >>> model.fit([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1]).predict([[1, 0]])
    array([1])
    """

    name: ClassVar[str] = "rff"
    gamma: float | Literal["scale"] = "scale"

    def __post_init__(self) -> None:
        """Stop a wrong value at the door."""
        if self.gamma != "scale":
            check_parameters({"gamma": self.gamma}, {"gamma": [Number(0.0, open_low=True)]})


MAPS: dict[str, type[ReLU | RFF]] = {kind.name: kind for kind in (ReLU, RFF)}


@dataclass(frozen=True)
class MapIsKnown(Rule):
    """A feature map by name or as a value."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        return isinstance(value, tuple(MAPS.values())) or (isinstance(value, str) and value in MAPS)

    def __str__(self) -> str:
        """Say what is allowed."""
        return f"one of {sorted(MAPS)} or a value such as RFF(gamma=0.5)"


def resolve_map(value: str | ReLU | RFF) -> ReLU | RFF:
    """The feature map that a parameter names."""
    return MAPS[value]() if isinstance(value, str) else value


def map_to_json(value: str | ReLU | RFF) -> Any:
    """A parameter as JSON holds it."""
    return value if isinstance(value, str) else {"map": value.name, **asdict(value)}


def map_from_json(entry: Any) -> Any:
    """The parameter from what JSON held."""
    if not isinstance(entry, dict):
        return entry
    kind = MAPS.get(str(entry.get("map")))
    options = {name: value for name, value in entry.items() if name != "map"}
    if kind is None or set(options) != {field.name for field in fields(kind)}:
        raise ModelFileError("the model file has an unknown feature map")
    return kind(**options)


@dataclass(frozen=True)
class FeatureMap:
    """A map from inputs to features, fixed for the life of a model.

    ``kind`` is "none", "relu" or "rff"; the projection is a function of the seed alone.
    """

    kind: str
    n_inputs: int
    n_random: int
    seed: int
    gamma: float = 1.0

    @classmethod
    def plain(cls, n_inputs: int) -> FeatureMap:
        """Inputs as they are."""
        return cls("none", n_inputs, 0, 0)

    @classmethod
    def random(
        cls, wanted: ReLU | RFF, n_random: int, seed: int, X: npt.NDArray[Any], weights: Floats
    ) -> FeatureMap:
        """Random features; ``X`` are the first examples, with their weights."""
        gamma = 1.0
        if isinstance(wanted, RFF):
            gamma = _scale(X, weights) if wanted.gamma == "scale" else float(wanted.gamma)
        return cls(wanted.name, X.shape[1], n_random, seed, gamma)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.n_random if self.kind != "none" else self.n_inputs

    @cached_property
    def projection(self) -> Floats:
        """Directions, one per row."""
        n_rows = self.n_random if self.kind == "relu" else -(-self.n_random // 2)
        rows: Floats = _core.random_projection(self.seed, n_rows, self.n_inputs)
        # So that the features of x have about the length of x (relu) or length 1 (rff).
        rows *= np.sqrt(2 / self.n_random) if self.kind == "relu" else np.sqrt(2 * self.gamma)
        return rows

    def features(self, rows: npt.NDArray[Any], *, constant: bool) -> Floats:
        """Features of some rows, and the constant 1 as the last one if wanted."""
        mapped = np.empty((len(rows), self.n_features + constant))
        _APPLY[self.kind](self, np.asarray(rows, dtype=np.float64), mapped[:, : self.n_features])
        mapped[:, self.n_features :] = 1.0
        return mapped


def _apply_relu(fixed: FeatureMap, rows: Floats, out: Floats) -> None:
    np.maximum(rows @ fixed.projection.T, 0.0, out=out)


def _apply_rff(fixed: FeatureMap, rows: Floats, out: Floats) -> None:
    phases = rows @ fixed.projection.T
    # A cosine and a sine per direction.
    scale = np.sqrt(2 / fixed.n_random)
    n_cosines = phases.shape[1]
    np.multiply(np.cos(phases), scale, out=out[:, :n_cosines])
    np.multiply(np.sin(phases[:, : fixed.n_random - n_cosines]), scale, out=out[:, n_cosines:])


def _copy(_: FeatureMap, rows: Floats, out: Floats) -> None:
    out[:] = rows


_APPLY = {"none": _copy, "relu": _apply_relu, "rff": _apply_rff}


def _scale(X: npt.NDArray[Any], weights: Floats) -> float:
    """1 / (n_features * variance of all entries)."""
    total = squares = 0.0
    for rows, block in float_blocks(X):
        values = np.asarray(block, dtype=np.float64)
        total += float(weights[rows] @ values.mean(axis=1))
        squares += float(weights[rows] @ (values**2).mean(axis=1))
    mean = total / weights.sum()
    variance = squares / weights.sum() - mean**2
    return 1.0 / (X.shape[1] * variance) if variance > 1e-12 * mean**2 else 1.0
