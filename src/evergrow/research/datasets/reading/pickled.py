"""Pickles of plain values and of arrays of bytes, read without the pickle machine.

A pickle is a program, and Python's machine for it can be told to call any function. Here the
standard library only takes the program apart, and the few instructions that such files need are
carried out below, on values that can do nothing. Any other instruction is refused, and nothing is
ever imported or called.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Callable
from typing import Any

import numpy as np

from evergrow.foundation.errors import DatasetError

__all__ = ["read_plain_pickle"]

# What may be named, and what it is here: a word. Old and new NumPy keep it in two places.
_WORDS = {
    "numpy.core.multiarray _reconstruct": "array",
    "numpy._core.multiarray _reconstruct": "array",
    "numpy ndarray": "ndarray",
    "numpy dtype": "dtype",
}
_BYTE_TYPES = ("u1", "|u1", "uint8")
_MAX_DIMENSIONS = 4


class _Word(str):
    """One of the allowed names; no text of the file is ever one."""

    __slots__ = ()


class _ByteType:
    """The type of arrays of bytes."""


class _ArrayToBe:
    """An array whose shape and values are still to come."""

    def __init__(self) -> None:
        self.values: np.ndarray[Any, Any] | None = None


_MARK = object()


class _Machine:
    """A stack, a memory, and the instructions that build plain values."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memory: dict[int, Any] = {}

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise DatasetError("an instruction finds nothing to work on")
        return value

    def pop_to_mark(self) -> list[Any]:
        place = len(self.stack) - 1
        while self.stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise DatasetError("a list has no beginning")
        values = self.stack[place + 1 :]
        del self.stack[place:]
        return values

    def put(self, place: int) -> None:
        self.memory[place] = self.stack[-1]

    def extend(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise DatasetError("values are added to something that is no list")
        target.extend(values)

    def update(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(values) % 2:
            raise DatasetError("entries are added to something that is no dictionary")
        for key, value in zip(values[::2], values[1::2], strict=True):
            # Nothing else: a tuple of tuples of tuples can take for ever to be looked up.
            if type(key) is not str:
                raise DatasetError(f"a dictionary has keys of type {type(key).__name__}, not text")
            target[key] = value

    def name(self, text: str) -> None:
        if text not in _WORDS:
            raise DatasetError(f"it names {text.replace(' ', '.')}, which data do not need")
        self.stack.append(_Word(_WORDS[text]))

    def tuple_of(self, n_values: int) -> None:
        values = [self.pop() for _ in range(n_values)][::-1]
        self.stack.append(tuple(values))

    def call(self) -> None:
        arguments, word = self.pop(), self.pop()
        known = type(word) is _Word and type(arguments) is tuple and len(arguments) > 0
        if known and word == "array" and type(arguments[0]) is _Word:
            self.stack.append(_ArrayToBe())
        elif known and word == "dtype":
            if arguments[0] not in _BYTE_TYPES:
                raise DatasetError("it holds an array of something else than bytes")
            self.stack.append(_ByteType())
        else:
            raise DatasetError("it calls something, which data do not need")

    def build(self) -> None:
        state, target = self.pop(), self.stack[-1]
        if type(target) is _ArrayToBe:
            target.values = _array(state)
        elif type(target) is not _ByteType:
            raise DatasetError("it changes something that is no array")


def _array(state: Any) -> np.ndarray[Any, Any]:
    """The array of NumPy's state: a version, the shape, the type, the order and the bytes."""
    if type(state) is not tuple or len(state) != 5:
        raise DatasetError("an array has no sound state")
    _, shape, kind, columns_first, content = state
    sound = type(shape) is tuple and all(type(side) is int and side >= 0 for side in shape)
    if not sound or len(shape) > _MAX_DIMENSIONS or type(kind) is not _ByteType:
        raise DatasetError("an array has no sound shape or holds something else than bytes")
    # Text of the old kind is bytes, one per letter.
    content = content.encode("latin-1") if type(content) is str else content
    if type(content) is not bytes or len(content) != math.prod(shape):
        raise DatasetError(f"an array of shape {shape} does not have as many bytes")
    order: Any = "F" if columns_first else "C"
    return np.frombuffer(content, np.uint8).reshape(shape, order=order)


Step = Callable[[_Machine, Any], None]

_VALUES = (
    "BINBYTES",
    "BINFLOAT",
    "BININT",
    "BININT1",
    "BININT2",
    "BINSTRING",
    "BINUNICODE",
    "LONG1",
    "SHORT_BINBYTES",
    "SHORT_BINSTRING",
)
_INSTRUCTIONS: dict[str, Step] = {
    **dict.fromkeys(_VALUES, lambda machine, value: machine.stack.append(value)),
    "NONE": lambda machine, _: machine.stack.append(None),
    "NEWTRUE": lambda machine, _: machine.stack.append(True),
    "NEWFALSE": lambda machine, _: machine.stack.append(False),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_TUPLE": lambda machine, _: machine.stack.append(()),
    "MARK": lambda machine, _: machine.stack.append(_MARK),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.pop_to_mark())),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "APPEND": lambda machine, _: machine.extend([machine.pop()]),
    "APPENDS": lambda machine, _: machine.extend(machine.pop_to_mark()),
    "SETITEM": lambda machine, _: machine.update([machine.pop(), machine.pop()][::-1]),
    "SETITEMS": lambda machine, _: machine.update(machine.pop_to_mark()),
    "BINPUT": lambda machine, place: machine.put(place),
    "LONG_BINPUT": lambda machine, place: machine.put(place),
    "BINGET": lambda machine, place: machine.stack.append(machine.memory[place]),
    "LONG_BINGET": lambda machine, place: machine.stack.append(machine.memory[place]),
    "GLOBAL": lambda machine, text: machine.name(text),
    "REDUCE": lambda machine, _: machine.call(),
    "BUILD": lambda machine, _: machine.build(),
    "PROTO": lambda _, __: None,
    "STOP": lambda _, __: None,
}


def _step_of(instruction: str) -> Step:
    step = _INSTRUCTIONS.get(instruction)
    if step is None:
        raise DatasetError(f"it has the instruction {instruction}, which data do not need")
    return step


def read_plain_pickle(content: bytes, what: str) -> dict[str, Any]:
    """Read a pickled dictionary of text, numbers, lists and arrays of bytes.

    Parameters
    ----------
    content : bytes
        The whole pickle, of protocol 2 as Python 2 wrote it, or 3.
    what : str
        What to call it in errors.

    Returns
    -------
    values : dict
        Text of Python 2, which is bytes, as letters of Latin-1; arrays as :class:`numpy.ndarray`
        of uint8 that cannot be written to.

    Examples
    --------
    >>> import pickle
    >>> from evergrow.research.datasets.reading.pickled import read_plain_pickle
    >>> read_plain_pickle(pickle.dumps({"labels": [3, 1]}, protocol=2), "the file")
    {'labels': [3, 1]}
    >>> harmful = pickle.dumps({"labels": eval}, protocol=2)
    >>> read_plain_pickle(harmful, "the file")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.DatasetError: the file is refused: it names __builtin__.eval, which
    data do not need
    """
    machine = _Machine()
    try:
        for instruction, argument, _ in pickletools.genops(content):
            _step_of(instruction.name)(machine, argument)
        (values,) = machine.stack
    except DatasetError as error:
        raise DatasetError(f"{what} is refused: {error}") from error
    # Stacks that run empty, memory that was never filled, lengths beyond the end.
    except (ValueError, IndexError, KeyError, UnicodeError, OverflowError) as error:
        raise DatasetError(f"{what} is no whole pickle: {error}") from error
    if type(values) is not dict:
        raise DatasetError(f"{what} must hold a dictionary")
    return {
        key: value.values if type(value) is _ArrayToBe else value for key, value in values.items()
    }
