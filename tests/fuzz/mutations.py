"""Changes of JSON values and arrays that stay close to what a reader expects.

A change of random bytes is refused by the first check of a hash. These change one entry of the
header or of an array to a value that is near, extreme, of another type, or taken from elsewhere in
the same file; the caller computes the hashes again.
"""

from __future__ import annotations

import copy
from math import isfinite
from random import Random
from typing import Any

import numpy as np

from tests.fuzz.files import Header, Tensors

_NUMBERS = (
    0, 1, 2, 3, 5, -1, -2, 127, 128, 255, 256, 4096, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53,
    2**62, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 0.0, 1.0, -1.0, 0.5, 1e-320, 1e-30, 1e-3,
    1e3, 1e30, 1e140, 1e308, -1e308, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
_OTHERS = (None, True, False, "", "a", "auto", "\x00", "\ud800", "a" * 300, [], [1], {}, {"a": 1})
_DTYPES = ("float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint16")

# Numbers that only choose how much work fitting does: a file that asks for much gets much. They
# stay within what finishes in a moment, so that a time limit shows hangs and not patience.
WORK = frozenset(
    {"max_iter", "n_estimators", "n_subsets", "max_trials", "n_words", "n_init", "n_features",
     "n_training_descriptors", "n", "max_classes", "batch_size", "n_components",
     "branching", "n_thresholds", "n_candidates", "n_patches", "max_features"}
)  # fmt: skip
_MOST_WORK = 64


def mutate(header: Header, tensors: Tensors, random: Random) -> tuple[Header, Tensors]:
    """A changed copy of the content of a model file."""
    header, tensors = copy.deepcopy(header), dict(tensors)
    for _ in range(random.choice((1, 1, 1, 2, 3, 5))):
        if tensors and random.random() < 0.55:
            _mutate_arrays(tensors, random)
        else:
            mutate_json(header, random)
    return header, tensors


def mutate_json(root: Any, random: Random) -> None:
    """Change one entry somewhere below a JSON object or list, in place."""
    places = list(_places(root))
    if not places:
        return
    # Deep entries outnumber the others by far: half of the time choose a level first.
    holder, key = random.choice(places)
    if random.random() < 0.5:
        holder, key = _descend(root, random)
    value = holder[key]
    match random.randrange(8):
        case 0 | 1 | 2:
            holder[key] = _near(value, str(key), random)
        case 3:
            holder[key] = random.choice(_OTHERS)
        case 4:
            holder[key] = _limited(random.choice(_NUMBERS), str(key))
        case 5:
            other, at = random.choice(places)
            holder[key] = copy.deepcopy(other[at])
        case 6:
            del holder[key]
        case 7:
            _resize(holder, value, random)


def _places(value: Any) -> Any:
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(entries):
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from _places(inner)


def _descend(value: Any, random: Random) -> tuple[Any, Any]:
    while True:
        key = random.choice(list(value) if isinstance(value, dict) else range(len(value)))
        inner = value[key]
        if not isinstance(inner, (dict, list)) or not inner or random.random() < 0.2:
            return value, key
        value = inner


def _resize(holder: Any, value: Any, random: Random) -> None:
    if isinstance(value, list):
        match random.randrange(3):
            case 0 if value:
                value.pop(random.randrange(len(value)))
            case 1 if value:
                value.append(copy.deepcopy(random.choice(value)))
            case _:
                random.shuffle(value)
    elif isinstance(holder, dict):
        holder[random.choice(("estimator", "a", "n_jobs", "memory", "cache"))] = value
    else:
        holder.append(value)


def _limited(value: Any, key: str) -> Any:
    if key in WORK and type(value) in (int, float) and abs(value) > _MOST_WORK:
        return _MOST_WORK
    return value


def _near(value: Any, key: str, random: Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return _limited(value + random.choice((-2, -1, 1, 2)), key)
    if isinstance(value, float):
        scaled = (value * 2, value / 2, -value, value + 1, value * 1e10, value * 1e-10)
        return random.choice((*scaled, int(value) if isfinite(value) else 0))
    if isinstance(value, str):
        return random.choice((value + "x", value[:-1], value.upper(), value.swapcase()))
    return random.choice((None, [value], {"a": value}))


def _mutate_arrays(tensors: Tensors, random: Random) -> None:
    name = random.choice(sorted(tensors))
    array = tensors[name]
    match random.randrange(12):
        case 0:
            del tensors[name]
        case 1:
            tensors[random.choice((name + "x", random.choice(sorted(tensors))))] = array
        case 2:
            tensors[name] = _as_type(array, random.choice(_DTYPES))
        case 3:
            tensors[name] = _reshaped(array, random)
        case 4:
            factor = random.choice((0, -1, 2, 1e-30, 1e10, 1e38, 1e150))
            with np.errstate(all="ignore"):
                tensors[name] = (array * np.float64(factor)).astype(array.dtype)
        case _:
            tensors[name] = _with_entry(array, random)


def _as_type(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    with np.errstate(all="ignore"):
        return array.astype(name)


def _reshaped(  # noqa: PLR0911
    array: np.ndarray[Any, Any], random: Random
) -> np.ndarray[Any, Any]:
    match random.randrange(7):
        case 0:
            return array[:-1]
        case 1:
            return np.concatenate([array, array[:1]])
        case 2:
            return array[:0]
        case 3:
            return array.reshape(-1)
        case 4:
            return array[..., :-1]
        case 5:
            return array[None]
        case _:
            return np.concatenate([array, array[..., :1]], axis=-1)


def _with_entry(array: np.ndarray[Any, Any], random: Random) -> np.ndarray[Any, Any]:
    if not array.size:
        return array
    changed = array.copy()
    flat = changed.reshape(-1)
    at, other = random.randrange(flat.size), random.randrange(flat.size)
    with np.errstate(all="ignore"):
        match random.randrange(5):
            case 0:
                flat[at] = flat[other]
            case 1:
                flat[[at, other]] = flat[[other, at]]
            case 2:
                flat[at] = flat[at] + flat.dtype.type(1)
            case 3:
                flat[at] = flat[at] - flat.dtype.type(1)
            case _:
                flat[at] = _extreme(flat.dtype, random)
    return changed


def _extreme(dtype: np.dtype[Any], random: Random) -> Any:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return random.choice((limits.min, limits.max, 0, limits.max // 2))
    limits = np.finfo(dtype)
    tiny = limits.smallest_subnormal
    return random.choice((np.nan, np.inf, -np.inf, limits.max, limits.min, tiny, 0.0, -1.0, 1e-30))
