"""Fixed random features: a projection made from the seed, then a nonlinearity."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.linear.scale import inverse_spread
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.params import Number, Rule, check_parameters

__all__ = [
    "BLOCK_BYTES",
    "RFF",
    "FeatureMap",
    "FeatureMapping",
    "MapIsKnown",
    "ReLU",
    "map_to_json",
    "resolve_map",
]

Floats = npt.NDArray[np.float64]

# Bytes of features computed at once.
BLOCK_BYTES = 64 << 20


@dataclass(frozen=True)
class ReLU:
    """Random projections of which only the positive part is kept.

    Their products approach the arc-cosine kernel of Cho and Saul (2009). They need no scale: twice
    the input is twice the features.

    Examples
    --------
    >>> from evergrow.estimators import ReLU, RLSClassifier
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
        scikit-learn, which reads these data once more; give a number for a model that does not
        depend on which data came first, and for models that are to be merged.

    Examples
    --------
    >>> from evergrow.estimators import RFF, RLSClassifier
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
            gamma = inverse_spread(X, weights) if wanted.gamma == "scale" else float(wanted.gamma)
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


@dataclass(frozen=True)
class FeatureMapping:
    """Features of rows as sums want them, with the constant 1 for an intercept."""

    features: FeatureMap
    constant: bool

    @property
    def max_rows(self) -> int:
        """How many rows are mapped at once."""
        return max(256, BLOCK_BYTES // (8 * (self.features.n_features + self.constant)))

    def __call__(self, block: npt.NDArray[Any]) -> Floats:
        """Features of a block of rows."""
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


def _copy(_: FeatureMap, rows: Floats, out: Floats) -> None:
    out[:] = rows


_APPLY = {"none": _copy, "relu": _apply_relu, "rff": _apply_rff}
