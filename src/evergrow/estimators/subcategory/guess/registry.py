"""The guessers by name, the check of their options, and their entry in a model file."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from evergrow.estimators.forest import NCMForestClassifier
from evergrow.estimators.subcategory.guess.forest import ForestGuesser
from evergrow.estimators.subcategory.guess.guesser import Guesser
from evergrow.estimators.subcategory.guess.nearest import NearestGuesser
from evergrow.estimators.subcategory.guess.ridge import RidgeGuesser
from evergrow.foundation.device import DEVICE_RULES
from evergrow.foundation.errors import InvalidTypeError, ModelFileError
from evergrow.foundation.params import (
    Choice,
    Flag,
    Nothing,
    Number,
    Rule,
    Satisfies,
    check_parameters,
)
from evergrow.storage.models.header import DEVICE, plain_parameters

# The first one is the default.
GUESSERS: dict[str, Guesser] = {
    "ridge": RidgeGuesser(),
    "nn": NearestGuesser(),
    "nn-unconstrained": NearestGuesser(within=False),
    "nn-discard": NearestGuesser(within=False, discard=True),
    "forest": ForestGuesser(),
}

# The classes of guessers, by their name in model files.
_KINDS: dict[str, Any] = {"forest": ForestGuesser, "nn": NearestGuesser, "ridge": RidgeGuesser}


# A parameter that takes a guesser: its name, or a value with options.
GUESSER_RULES: list[Rule] = [
    Choice(tuple(GUESSERS)),
    Satisfies(
        "a value such as RidgeGuesser()", lambda value: isinstance(value, tuple(_KINDS.values()))
    ),
]

_FOREST = Satisfies("an NCMForestClassifier", lambda value: isinstance(value, NCMForestClassifier))
_OPTION_RULES: dict[str, list[Rule]] = {
    "within": [Flag()],
    "discard": [Flag()],
    "scaling": [Number(0.0, 1.0)],
    "forest": [Nothing(), _FOREST],
    "device": DEVICE_RULES,
}


def guesser_of(value: str | Guesser) -> Guesser:
    """The guesser for a name, or the given one; its options are checked."""
    guesser = GUESSERS[value] if isinstance(value, str) else value
    check_parameters({name: getattr(guesser, name, None) for name in _OPTION_RULES}, _OPTION_RULES)
    return guesser


def guesser_to_json(guess: Any) -> Any:
    """The parameter ``guess`` for the header of a model file."""
    if isinstance(guess, str):
        return guess
    name = next(name for name, kind in _KINDS.items() if isinstance(guess, kind))
    options = {field.name: getattr(guess, field.name) for field in fields(guess)}
    if options.get("forest") is not None:
        raise InvalidTypeError(
            "a model whose guess is a ForestGuesser with a forest of its own cannot be saved: set "
            "guess='forest' first"
        )
    return {"name": name, **plain_parameters(options)}


def guesser_from_json(entry: Any) -> Any:
    """The parameter ``guess`` from the header of a model file."""
    if not isinstance(entry, dict):
        return entry
    options = dict(entry)
    kind = _KINDS.get(str(options.pop("name", None)))
    plain = all(isinstance(value, (bool, int, float, type(None))) for value in options.values())
    if (
        kind is None
        or not plain
        or set(options) - {field.name for field in fields(kind)}
        or DEVICE in options
    ):
        raise ModelFileError(f"the model file has an unknown guesser {entry}")
    return kind(**options)
