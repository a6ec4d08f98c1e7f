"""Which tests of a room decide: ``python -m tests.mutants MODULES --tests PATHS [--stay PATHS]``.

Prints how many of ``-n`` mutants the tests kill, and which functions are needed for it: the cover
set, which takes every branch that any test takes and has the tests of ``--stay``, and those that
kill a mutant that it misses. A mutant is one change of a line that tests run, drawn by ``--seed``.
It is tested in a fork: what tests start as another process is not seen.
"""

import argparse
import ast
import gc
import os
import random
import re
import signal
import sys
import time
from operator import attrgetter
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from _pytest.runner import runtestprotocol

PAIRS = "Lt LtE, Gt GtE, Eq NotEq, In NotIn, Is IsNot, Add Sub, Mult Div, And Or"
SIDES = re.findall(r"(\w+) (\w+)", PAIRS)
OPPOSITE = {getattr(ast, a): getattr(ast, b) for one in SIDES for a, b in (one, one[::-1])}
PLACE = attrgetter("co_filename", "co_qualname", "co_firstlineno", "co_freevars")


def changes(file):
    """Every change of a module: its tree, the node, the field to change, and what comes there."""
    tree = ast.parse(Path(file).read_text())
    lines = (line for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for line in f.body)
    for node in dict.fromkeys(node for line in lines for node in ast.walk(line)):
        match node:
            case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in OPPOSITE:
                yield tree, node, "op", OPPOSITE[type(node.op)]()
            case ast.Compare() if type(node.ops[0]) in OPPOSITE:
                yield tree, node, "ops", [OPPOSITE[type(node.ops[0])](), *node.ops[1:]]
            case ast.If() | ast.IfExp() | ast.While():
                yield tree, node, "test", ast.UnaryOp(ast.Not(), node.test)
            case ast.Return(value=ast.expr()) | ast.Expr(value=ast.Call()):
                yield tree, node, "value", ast.Constant(None)
            case ast.Constant(value=int(value)):
                yield tree, node, "value", value + 1 if type(value) is int else not value


def codes(code):
    for one in (one for one in code.co_consts if isinstance(one, CodeType)):
        yield from (one, *codes(one))


def kill(mutated, tests):
    """The function of the first test that fails, dies or takes too long."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.dup2(os.dup2(os.open(os.devnull, os.O_WRONLY), 1), 2)
        for function, code in mutated:
            function.__code__ = code
        for (seconds, _, item, _), following in zip(tests, [*tests[1:], [None] * 4], strict=True):
            os.write(writing, b".")
            signal.alarm(20 + int(10 * seconds))
            if any(one.failed for one in runtestprotocol(item, nextitem=following[2], log=False)):
                os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        n_begun = len(file.read())
    return tests[n_begun - 1][1] if os.waitpid(child, 0)[1] else None


class Room:
    """A plugin of pytest: it runs the tests with a tracer, and then against each mutant."""

    def __init__(self, options):
        self.options, self.last = options, {}
        self.files = {str(f.resolve()) for p in options.modules for f in (*p.rglob("*.py"), p)}
        # Arcs of a test and of each function; seconds, function, item and lines of each test.
        self.arcs, self.functions, self.tests = set(), {}, []

    def trace(self, frame, event, _arg):
        if (file := frame.f_code.co_filename) not in self.files:
            return None
        self.arcs.add((file, self.last.pop(frame, 0), frame.f_lineno, event))
        if event != "return":
            self.last[frame] = frame.f_lineno
        return self.trace

    def pytest_runtestloop(self, session):
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            self.arcs, began = set(), time.monotonic()
            sys.settrace(self.trace)
            reports = runtestprotocol(item, nextitem=following, log=False)
            sys.settrace(None)
            name = item.nodeid.partition("[")[0]
            if any(one.failed for one in reports):
                sys.stdout.write(f"left out, as it fails without a mutant: {item.nodeid}\n")
                continue
            seconds, lines = time.monotonic() - began, {arc[:3:2] for arc in self.arcs}
            self.tests.append((seconds, name, item, lines))
            self.functions.setdefault(name, set()).update(self.arcs)
        self.measure()
        return True

    def measure(self):
        arcs = self.functions
        kept = [name for name in arcs if name.startswith(tuple(self.options.stay))]
        missing = set().union(*arcs.values()).difference(*(arcs[name] for name in kept))
        while missing:
            kept.append(max(arcs, key=lambda name: len(arcs[name] & missing)))
            missing -= arcs[kept[-1]]
        if name := kill([], self.tests):
            pytest.exit(f"{name} fails in a fork without a mutant", 1)
        cover, killers, alive = {*kept}, [], []
        for place, mutated in self.mutants(set().union(*(test[3] for test in self.tests))):
            # The cover set first, then those that killed another mutant; the fastest first.
            tests = [test for test in self.tests if place in test[3]]
            tests.sort(key=lambda test: (test[1] not in cover, test[1] not in kept, test[0]))
            killer = kill(mutated, tests)
            (killers if killer else alive).append(killer or f"{place[0]}:{place[1]}")
            kept += [killer] if killer and killer not in kept else []
        for title, found in (
            (f"{len(killers)} mutants are killed, and not these {len(alive)}:", alive),
            (f"{sum(one in cover for one in killers)} by the cover set:", kept[: len(cover)]),
            ("others by:", kept[len(cover) :]),
            ("not needed:", [name for name in arcs if name not in kept]),
        ):
            sys.stdout.write("\n  ".join([title, *found]) + "\n")

    def mutants(self, lines):
        """Changes in these lines: the file and line, and functions with their new code."""
        gc.unfreeze()
        files = sorted({file for file, _ in lines})
        every = [(file, k, one[1].lineno) for file in files for k, one in enumerate(changes(file))]
        every = [one for one in every if one[::2] in lines]
        random.Random(self.options.seed).shuffle(every)
        for file, k, line in every[: self.options.n]:
            tree, node, field, value = list(changes(file))[k]
            setattr(node, field, value)
            new = compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)
            found = {PLACE(code): code for code in codes(new)}
            live = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
            pairs = [(one, found.get(PLACE(one.__code__), one.__code__)) for one in live]
            if pairs := [(one, code) for one, code in pairs if code != one.__code__]:
                yield (file, line), pairs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="+", type=Path)
    parser.add_argument("--tests", nargs="+", required=True)
    parser.add_argument("--stay", nargs="+", default=["-"])
    for name, default in (("-n", 300), ("--seed", 0)):
        parser.add_argument(name, type=int, default=default)
    options = parser.parse_args()
    os.environ["CI"] = "1"  # Hypothesis draws the same examples every time.
    arguments = ["-q", "-n0", "--timeout=0", "-p", "no:cacheprovider", "-m", "not nightly"]
    sys.exit(pytest.main([*arguments, *options.tests], plugins=[Room(options)]))
