"""Pickles of plain values, read without the pickle machine.

A pickle is a program, and the pickle module can be told to call any function. Here the standard
library only takes the program apart, and this module carries out the few instructions that build
plain values. A caller may allow names: each stands for a harmless object of the caller. Any other
instruction or name is refused, and nothing is ever imported.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO


class RefusedPickleError(ValueError):
    """The pickle does something that is not allowed."""


_MARK = object()


class _Machine:
    """A stack, a memory, and the instructions that build plain values."""

    def __init__(
        self, names: Mapping[str, Any], load_persistent: Callable[[Any], Any] | None
    ) -> None:
        self.names = names
        self.load_persistent = load_persistent
        self.stack: list[Any] = []
        self.memory: dict[int, Any] = {}

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise RefusedPickleError("an instruction has no operand")
        return value

    def pop_to_mark(self) -> list[Any]:
        place = len(self.stack) - 1
        while self.stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise RefusedPickleError("a list has no start")
        values = self.stack[place + 1 :]
        del self.stack[place:]
        return values

    def put(self, place: int) -> None:
        self.memory[place] = self.stack[-1]

    def extend(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise RefusedPickleError("values are added to something that is not a list")
        target.extend(values)

    def update(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict) or len(values) % 2:
            raise RefusedPickleError("entries are added to something that is not a dictionary")
        for key, value in zip(values[::2], values[1::2], strict=True):
            # Only text: hashing nested tuples can take exponential time.
            if type(key) is not str:
                raise RefusedPickleError(f"a dictionary has keys of type {type(key).__name__}")
            target[key] = value

    def name(self, text: str) -> None:
        if text not in self.names:
            raise RefusedPickleError(f"it names {text.replace(' ', '.')}, which is not allowed")
        self.stack.append(self.names[text])

    def tuple_of(self, n_values: int) -> None:
        values = [self.pop() for _ in range(n_values)][::-1]
        self.stack.append(tuple(values))

    def call(self) -> None:
        arguments, function = self.pop(), self.pop()
        # Plain values are never callable, so this is one of the allowed names.
        if not callable(function) or type(arguments) is not tuple:
            raise RefusedPickleError("it calls something that is not a function")
        self.stack.append(function(*arguments))

    def build(self) -> None:
        state, target = self.pop(), self.stack[-1]
        set_state = getattr(target, "set_pickled_state", None)
        if set_state is None:
            raise RefusedPickleError("it changes something that has no state")
        set_state(state)

    def persistent(self) -> None:
        if self.load_persistent is None:
            raise RefusedPickleError("it has the instruction BINPERSID, which is not allowed")
        self.stack.append(self.load_persistent(self.pop()))


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
    "BINPERSID": lambda machine, _: machine.persistent(),
    "PROTO": lambda _, __: None,
    "STOP": lambda _, __: None,
}


def read_pickle(
    source: bytes | BinaryIO,
    names: Mapping[str, Any],
    load_persistent: Callable[[Any], Any] | None = None,
) -> Any:
    """Read one pickle of protocol 2 or 3, without running it; a file up to the end of the pickle.

    ``names`` has what stands for each allowed name, ``"module name"``. A function may be called by
    the pickle with any plain values. An object with a method ``set_pickled_state`` gets its state.
    ``load_persistent`` returns the object of a persistent id; None to refuse them.

    Raises a ``RefusedPickleError`` if the pickle does anything that is not allowed, and a
    ``ValueError``, ``IndexError``, ``KeyError`` or ``OverflowError`` if it is not complete.

    >>> import pickle
    >>> read_pickle(pickle.dumps({"labels": [3, 1]}, protocol=2), {})
    {'labels': [3, 1]}
    >>> read_pickle(pickle.dumps(eval, protocol=2), {})
    Traceback (most recent call last):
    ...
    evergrow.storage.pickles.RefusedPickleError: it names __builtin__.eval, which is not allowed
    """
    machine = _Machine(names, load_persistent)
    for instruction, argument, _ in pickletools.genops(source):
        step = _INSTRUCTIONS.get(instruction.name)
        if step is None:
            name = instruction.name
            raise RefusedPickleError(f"it has the instruction {name}, which is not allowed")
        step(machine, argument)
    (value,) = machine.stack
    return value
