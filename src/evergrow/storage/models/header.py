"""What the files of all estimators have in common: parameters, classes, names of features."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError, ModelFileError
from evergrow.foundation.extras import __version__
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import OneOf, Rule, Value

Tensors = dict[str, npt.NDArray[Any]]
# Makes an estimator from the header and arrays of a model inside another one's file.
Build = Callable[[dict[str, Any], Tensors], Any]

# Parameters that do not affect predictions, and their defaults. They fit the machine and terminal
# that saved a model, not another; a file must not choose how many threads a computer starts.
MACHINE_PARAMETERS: dict[str, Any] = {"n_jobs": None, "verbose": 0}
# Where the entry of a value names its class.
_KIND = "kind"
# A loaded model may start this many threads, or as many as there are processors.
_MOST_THREADS = 64
# No machine that saved a model has more.
_ANY_MACHINE = 1 << 10

# Types of class labels that can be saved, and how JSON holds each; object arrays hold strings.
_LABEL_TYPES: dict[str, type] = {"<U": str, "|O": str, "|b1": bool, "|i1": int, "|u1": int}
_LABEL_TYPES |= {f"<{kind}{size}": int for kind in "iu" for size in (2, 4, 8)}
_LABEL_TYPES |= {f"<f{size}": float for size in (2, 4, 8)}


# Names of classes: the longest, and characters of the array of all, relative to those of the names
# and in any case.
_MAX_NAME_LENGTH = 10_000
_MAX_EXPANSION = 32
_FREE_NAMES = 1 << 20


def check_saveable(kind: type, where: str = "") -> None:
    """Raise a ``TypeError`` for a class that ``load`` would not find; ``where`` it was found."""
    if not kind.__module__.startswith("evergrow."):
        raise InvalidTypeError(
            f"{kind.__name__}{where} cannot be saved: only Evergrow's own estimators can, because "
            "load knows no others"
        )


def common_header(estimator: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """What every header says: who wrote it, the estimator, its parameters, names of features."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "library_version": __version__,
        "estimator": type(estimator).__name__,
        "parameters": parameters,
        "feature_names": None if names is None else names.tolist(),
    }


def plain_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters as JSON holds them."""
    plain = {name: _plain(value) for name, value in parameters.items()}
    # The state of a generator cannot be saved.
    if isinstance(plain.get("random_state"), np.random.RandomState):
        plain["random_state"] = None
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Value):
        return {_KIND: type(value).__name__, **plain_parameters(value.get_params())}
    return value.item() if isinstance(value, np.generic) else value


def with_values(parameters: dict[str, Any], rules: Mapping[str, Sequence[Rule]]) -> dict[str, Any]:
    """Parameters of which those that may be values, by these rules, are rebuilt."""
    rebuilt = dict(parameters)
    for name, entry in parameters.items():
        kinds = [r.kinds for r in rules.get(name, ()) if isinstance(r, OneOf)]
        table = {kind.__name__: kind for each in kinds for kind in each}
        kind = table.get(str(entry.get(_KIND))) if isinstance(entry, dict) else None
        if kind is not None:
            fields = {key: value for key, value in entry.items() if key != _KIND}
            rebuilt[name] = kind().set_params(**with_values(fields, kind._rules))
    return rebuilt


def parameters_of(header: dict[str, Any]) -> dict[str, Any]:
    """The parameters that a header lists."""
    parameters = header.get("parameters")
    if not isinstance(parameters, dict):
        raise ModelFileError("the model file has no parameters")
    return parameters


def reset_machine_parameters(header: Any) -> Any:
    """Return a header whose models, nested ones too, have the default threads and verbosity."""
    if isinstance(header, (list, tuple)):
        return [reset_machine_parameters(entry) for entry in header]
    if not isinstance(header, dict):
        return header
    plain = {name: reset_machine_parameters(entry) for name, entry in header.items()}
    parameters = plain.get("parameters")
    if isinstance(parameters, dict):
        for name in MACHINE_PARAMETERS.keys() & parameters.keys():
            # A pipeline of scikit-learn has a flag in place of a level.
            flag = isinstance(parameters[name], bool)
            parameters[name] = False if flag else MACHINE_PARAMETERS[name]
    return plain


def limit_threads(header: Any) -> Any:
    """Return a header whose models, nested ones too, ask for no more threads than are of use."""
    if isinstance(header, list):
        return [limit_threads(entry) for entry in header]
    if not isinstance(header, dict):
        return header
    plain = {name: limit_threads(entry) for name, entry in header.items()}
    parameters = plain.get("parameters")
    if isinstance(parameters, dict) and type(parameters.get("n_jobs")) is int:
        if parameters["n_jobs"] > _ANY_MACHINE:
            raise ModelFileError(f"the model file asks for {parameters['n_jobs']} threads")
        most = max(_MOST_THREADS, os.cpu_count() or 1)
        parameters["n_jobs"] = min(parameters["n_jobs"], most)
    return plain


def feature_names(header: dict[str, Any], n_features: int) -> npt.NDArray[Any] | None:
    """The names of the features that a header lists, if any."""
    names = header.get("feature_names")
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != n_features:
        raise ModelFileError("the model file names the wrong number of features")
    if not all(type(name) is str for name in names):
        raise ModelFileError("the model file names features by something other than strings")
    return np.array(names, dtype=object)


def check_array(
    array: npt.NDArray[Any] | None, name: str, dtype: type, shape: tuple[int | None, ...]
) -> npt.NDArray[Any]:
    """Raise a ``ModelFileError`` unless the array has this type and shape and is finite.

    ``None`` in the shape stands for any size.
    """
    if array is None:
        raise ModelFileError(f"the model file lacks the array {name!r}")
    fits = array.dtype == dtype and array.ndim == len(shape)
    fits = fits and all(want in (None, size) for want, size in zip(shape, array.shape, strict=True))
    if not fits or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        raise ModelFileError(
            f"the model file is inconsistent: the array {name} has the wrong type, shape or values"
        )
    return array


def arrays_inside(tensors: Tensors, prefix: str) -> Tensors:
    """The arrays of a model inside another one's file, by their own names."""
    return {
        name.removeprefix(prefix): array
        for name, array in tensors.items()
        if name.startswith(prefix)
    }


def classes_to_json(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Names of classes and their type, as JSON holds them."""
    # The width of a string array follows from its strings.
    name = "<U" if classes.dtype.kind == "U" else classes.dtype.newbyteorder("<").str
    kind, values = _LABEL_TYPES.get(name), classes.tolist()
    if kind is None or not all(type(value) is kind for value in values):
        raise InvalidTypeError(
            f"classes of type {classes.dtype} cannot be saved: use integers or strings"
        )
    if kind is str and (problem := _length_problem(values)):
        raise InvalidInputError(f"the classes cannot be saved: {problem}")
    return {"dtype": name, "values": values}


def _length_problem(names: Iterable[str]) -> str | None:
    """What is wrong if an array of the names would take far more memory than the names.

    In an array every name takes as much memory as the longest.
    """
    lengths = [len(name) for name in names]
    longest = max(lengths, default=0)
    if longest > _MAX_NAME_LENGTH:
        return f"a name has {longest} characters, the limit is {_MAX_NAME_LENGTH}"
    if longest * len(lengths) > max(_FREE_NAMES, _MAX_EXPANSION * sum(lengths)):
        return (
            f"{len(lengths)} names, the longest of {longest} characters, would take too much memory"
        )
    return None


def class_list(entry: Any) -> ClassList:
    """The classes from :func:`classes_to_json`."""
    dtype = entry.get("dtype") if isinstance(entry, dict) else None
    values = entry.get("values") if isinstance(entry, dict) else None
    if not isinstance(values, list) or not values:
        raise ModelFileError("the model file lists no classes")
    kind = _LABEL_TYPES.get(dtype) if isinstance(dtype, str) else None
    if dtype is None or kind is None or not all(type(value) is kind for value in values):
        raise ModelFileError("the model file lists classes of mixed or unexpected types")
    if kind is str and (problem := _length_problem(values)):
        raise ModelFileError(f"the model file lists classes that are too long: {problem}")
    try:
        with np.errstate(over="ignore"):
            classes = np.array(values, dtype=dtype)
    except OverflowError as error:
        raise ModelFileError(f"the model file lists a class out of range: {error}") from error
    # Also false for what the type cannot hold, and for what is not a number.
    if classes.tolist() != values or len(set(values)) != len(values):
        raise ModelFileError("the model file lists a class twice or one that its type cannot hold")
    return ClassList(classes)
