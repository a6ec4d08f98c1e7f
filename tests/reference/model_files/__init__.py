"""Which headers and arrays are those of a model.

The twin of the checks that reading a model file makes, in NumPy and plain Python, one condition per
line. Two things are taken from Evergrow: the declared rules of an estimator's parameters, and the
words for them (names of measures, poolings, update strategies). A network inside a file is judged
by the parser of ONNX alone, so there is no second opinion on it.
"""

from __future__ import annotations

import os
from typing import Any

# Each fills in its readers.
from tests.reference.model_files import forests, least_squares, pipelines, sums, words  # noqa: F401
from tests.reference.model_files.content import (
    FORMAT_VERSION,
    Header,
    Tensors,
    UndecidedError,
    read,
)


def accepts(header: Header, tensors: Tensors) -> bool | None:
    """Whether the content is that of a model; None for a network, which has no twin."""
    try:
        version = header.get("format_version")
        assert type(version) is int
        assert 1 <= version <= FORMAT_VERSION
        read(with_fewer_threads(header), tensors)
    except UndecidedError:
        return None
    # A value of a wrong type fails in whatever is done with it first.
    except (AssertionError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        return False
    return True


def with_fewer_threads(entry: Any) -> Any:
    """A header that asks for no more threads than are of use, at any depth."""
    if isinstance(entry, list):
        return [with_fewer_threads(one) for one in entry]
    if not isinstance(entry, dict):
        return entry
    plain = {name: with_fewer_threads(value) for name, value in entry.items()}
    parameters = plain.get("parameters")
    if isinstance(parameters, dict) and type(parameters.get("n_jobs")) is int:
        assert parameters["n_jobs"] <= 1 << 10
        parameters["n_jobs"] = min(parameters["n_jobs"], max(64, os.cpu_count() or 1))
    return plain
