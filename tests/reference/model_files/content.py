"""Arrays, numbers, parameters and classes of model files, as all models have them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

import evergrow.estimators
from evergrow.foundation.params import check_parameters

Header = dict[str, Any]
Tensors = dict[str, Any]

FORMAT_VERSION = 3
LABELS = {"<U": str, "|O": str, "|b1": bool, "|i1": int, "|u1": int}
LABELS |= {f"<{kind}{size}": int for kind in "iu" for size in (2, 4, 8)}
LABELS |= {f"<f{size}": float for size in (2, 4, 8)}
MOST_LEARNT = 2**53
LARGEST_MEAN = 1e141
LARGEST_ROW = 1e140
LARGEST_COMPONENT = 1e140
LARGEST_DESCRIPTOR = 1e15
FARTHEST = 1e140


class UndecidedError(Exception):
    """A part of the file has no twin."""


@dataclass(frozen=True)
class Model:
    """What other models of the same file need to know of a model."""

    kind: str
    n_inputs: int | None = None
    n_outputs: int | None = None
    classes: list[Any] | None = None
    transforms: bool = False
    n_words: int = 0
    forgets_by_examples: bool = False


def inside(header: Any, tensors: Tensors, prefix: str) -> Model:
    """Check a model inside another one's file."""
    return read(header, {n[len(prefix) :]: a for n, a in tensors.items() if n.startswith(prefix)})


def array(tensors: Tensors, name: str, dtype: str, *shape: int | None) -> Any:
    """A finite array of this type and shape."""
    found = tensors[name]
    assert found.dtype == dtype
    assert found.ndim == len(shape)
    assert all(want is None or want == size for want, size in zip(shape, found.shape, strict=True))
    assert found.dtype.kind != "f" or np.isfinite(found).all()
    return found


def whole(value: Any, low: int, high: int) -> int:
    """An integer in a range, both ends included; True and False are not integers."""
    assert type(value) is int
    assert low <= value <= high
    return value


def real(value: Any) -> float:
    """A finite float of at least 0, as JSON holds it with a point."""
    assert isinstance(value, float)
    assert 0 <= value < math.inf
    return value


def number(value: Any) -> float:
    """A number, whole or not."""
    assert type(value) in (int, float)
    return cast("float", value)


def parameters_of(header: Header) -> Header:
    """The parameters in a header."""
    assert isinstance(header["parameters"], dict)
    assert "device" not in header["parameters"]
    return dict(header["parameters"])


def built(kind: Any, parameters: Header) -> Any:
    """An estimator whose parameters are allowed by its declared rules."""
    estimator = kind(**parameters)
    check_parameters({name: getattr(estimator, name) for name in kind._rules}, kind._rules)
    return estimator


def check_names(header: Header, n_features: int) -> None:
    """Check the names of the features, if there are any."""
    names = header.get("feature_names")
    if names is not None:
        assert isinstance(names, list)
        assert len(names) == n_features
        assert all(type(name) is str for name in names)


def labels_of(entry: Any) -> list[Any]:
    """The classes that an entry lists."""
    values, dtype = entry["values"], entry["dtype"]
    assert isinstance(values, list)
    assert values
    assert all(type(value) is LABELS[dtype] for value in values)
    assert len(set(values)) == len(values)
    if LABELS[dtype] is str:
        lengths = [len(value) for value in values]
        assert max(lengths) <= 10_000
        assert max(lengths) * len(values) <= max(1 << 20, 32 * sum(lengths))
    with np.errstate(over="ignore"):
        assert np.array(values, dtype=dtype).tolist() == values
    return values


def estimator_class(header: Header) -> Any:
    """The class that a header names."""
    return getattr(evergrow.estimators, header["estimator"])


# What checks the files of each estimator; the modules of this package fill it in.
READERS: dict[str, Callable[[Header, Tensors], Model]] = {}


def read(header: Any, tensors: Tensors) -> Model:
    """Check one model, which may be inside another one."""
    assert isinstance(header, dict)
    name = header["estimator"]
    assert isinstance(name, str)
    return READERS[name](header, tensors)
