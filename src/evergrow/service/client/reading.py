"""From JSON to values: what is missing or of another kind is an error, what is more is ignored."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from evergrow.foundation.errors import ServiceError

__all__ = ["value_of"]

Value = TypeVar("Value")


def value_of(kind: type[Value], body: object) -> Value:
    """Make a value of what a service sent.

    Fields that this version does not know are left out, so that a newer service can be asked.

    Examples
    --------
    >>> from evergrow.service.client.reading import value_of
    >>> from evergrow.service.client.results import Accuracy
    >>> value_of(Accuracy, {"rate": 1, "low": 0.6, "high": 1.0, "n": 4, "later": True})
    Accuracy(rate=1.0, low=0.6, high=1.0, n=4)
    """
    return cast(Value, _read(kind, body, kind.__name__))


def _read(kind: Any, body: object, where: str) -> Any:
    if is_dataclass(kind):
        return _read_fields(cast(type, kind), body, where)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is types.UnionType:
        if body is None and types.NoneType in inner:
            return None
        return _read(next(one for one in inner if one is not types.NoneType), body, where)
    if origin is tuple:
        return _read_tuple(inner, body, where)
    if kind is float and isinstance(body, int) and not isinstance(body, bool):
        return float(body)
    # A bool is an int to Python, not to whoever wrote the answer.
    if not isinstance(body, kind) or (isinstance(body, bool) and kind is not bool):
        raise _not_understood(where)
    return body


def _read_fields(kind: type, body: object, where: str) -> Any:
    if not isinstance(body, Mapping):
        raise _not_understood(where)
    hints = _hints(kind)
    found = {}
    for field in fields(cast(Any, kind)):
        # Some names of JSON are words of Python's own.
        name = field.metadata.get("name", field.name)
        if name in body:
            found[field.name] = _read(hints[field.name], body[name], f"{where}.{name}")
        elif field.default is MISSING:
            raise _not_understood(f"{where}.{name}")
    return kind(**found)


def _read_tuple(inner: tuple[Any, ...], body: object, where: str) -> tuple[Any, ...]:
    if not isinstance(body, Sequence) or isinstance(body, str):
        raise _not_understood(where)
    kinds = [inner[0]] * len(body) if inner[-1] is Ellipsis else list(inner)
    if len(kinds) != len(body):
        raise _not_understood(where)
    return tuple(_read(kind, one, where) for kind, one in zip(kinds, body, strict=True))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _not_understood(where: str) -> ServiceError:
    return ServiceError(0, f"the answer is none of an Evergrow service: {where} is not as expected")
