"""Which tests of a room decide: ``python -m tests.mutants MODULES --tests PATHS``.

Prints how many of ``-n`` mutants the tests kill, and which functions are needed for it: the cover
set, which takes every branch that any test takes, and those that kill a mutant that it misses.
A mutant is one change of a line, drawn by ``--seed``. It is tested in a fork of this process.
"""

import argparse
import ast
import gc
import os
import random
import signal
import sys
import time
from operator import attrgetter
from pathlib import Path
from types import CodeType, FunctionType, SimpleNamespace

import pytest
from _pytest.runner import runtestprotocol

PAIRS = "Lt LtE, Gt GtE, Eq NotEq, In NotIn, Is IsNot, Add Sub, Mult Div, And Or"
SIDES = [[getattr(ast, side) for side in pair.split()] for pair in PAIRS.split(", ")]
OPPOSITE = {one: other for a, b in SIDES for one, other in ((a, b), (b, a))}
PLACE = attrgetter("co_filename", "co_qualname", "co_firstlineno", "co_freevars")


def changes(file, lines):
    """Every change of these lines of a file: file, tree, node, the field, and what comes there."""
    tree = ast.parse(Path(file).read_text())
    body = (line for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for line in f.body)
    nodes = dict.fromkeys(node for line in body for node in ast.walk(line))
    for node in (n for n in nodes if (file, getattr(n, "lineno", 0)) in lines):
        match node:
            case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in OPPOSITE:
                yield file, tree, node, "op", OPPOSITE[type(node.op)]()
            case ast.Compare() if type(node.ops[0]) in OPPOSITE:
                yield file, tree, node, "ops", [OPPOSITE[type(node.ops[0])](), *node.ops[1:]]
            case ast.If() | ast.IfExp() | ast.While():
                yield file, tree, node, "test", ast.UnaryOp(ast.Not(), node.test)
            case ast.Return(value=ast.expr()) | ast.Expr(value=ast.Call()):
                yield file, tree, node, "value", ast.Constant(None)
            case ast.Constant(value=int(value)):
                yield file, tree, node, "value", value + 1 if type(value) is int else not value


def kill(mutated, tests):
    """The function of the first test that fails, dies or takes too long."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.dup2(os.dup2(os.open(os.devnull, os.O_WRONLY), 1), 2)
        for function, code in mutated:
            function.__code__ = code
        for test, after in zip(tests, [*(t.item for t in tests[1:]), None], strict=True):
            os.write(writing, b".")
            signal.alarm(20 + int(10 * test.seconds))
            if any(one.failed for one in runtestprotocol(test.item, nextitem=after, log=False)):
                os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        n_begun = len(file.read())
    return tests[n_begun - 1].name if os.waitpid(child, 0)[1] else None


class Room:
    """A plugin of pytest: it runs the tests with a tracer, and then against each mutant."""

    def __init__(self, options):
        self.options, self.last = options, {}
        self.files = {str(f.resolve()) for p in options.modules for f in (*p.rglob("*.py"), p)}
        self.arcs, self.arcs_of, self.tests = set(), {}, []

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
            runtestprotocol(item, nextitem=following, log=False)
            sys.settrace(None)
            name = item.nodeid.partition("[")[0]
            seconds = time.monotonic() - began
            lines = {(file, line) for file, _, line, _ in self.arcs}
            self.tests.append(SimpleNamespace(item=item, name=name, seconds=seconds, lines=lines))
            self.arcs_of.setdefault(name, set()).update(self.arcs)
        self.measure()
        return True

    def measure(self):
        arcs, kept = self.arcs_of, []
        missing = set().union(*arcs.values())
        while missing:
            kept.append(max(arcs, key=lambda name: len(arcs[name] & missing)))
            missing -= arcs[kept[-1]]
        if name := kill([], self.tests):
            pytest.exit(f"{name} fails without a mutant", 1)
        cover, killers, alive = {*kept}, [], []
        for (file, line), mutated in self.mutants(set().union(*(t.lines for t in self.tests))):
            # The cover set first, then those that killed another mutant; the fastest first.
            tests = [test for test in self.tests if (file, line) in test.lines]
            tests.sort(key=lambda t: (t.name not in cover, t.name not in kept, t.seconds))
            killer = kill(mutated, tests)
            (killers if killer else alive).append(killer or f"{file}:{line}")
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
        every = [one for file in sorted(self.files) for one in changes(file, lines)]
        random.Random(self.options.seed).shuffle(every)
        for file, tree, node, field, value in every[: self.options.n]:
            before = getattr(node, field)
            setattr(node, field, value)
            new = compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)
            setattr(node, field, before)
            codes = [new]
            for code in codes:
                codes += [one for one in code.co_consts if isinstance(one, CodeType)]
            found = {PLACE(code): code for code in codes}
            live = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
            pairs = [(one, found.get(PLACE(one.__code__), one.__code__)) for one in live]
            if pairs := [(one, code) for one, code in pairs if code != one.__code__]:
                yield (file, node.lineno), pairs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="+", type=Path)
    parser.add_argument("--tests", nargs="+", required=True)
    for name, default in (("-n", 300), ("--seed", 0)):
        parser.add_argument(name, type=int, default=default)
    options = parser.parse_args()
    os.environ["CI"] = "1"  # Hypothesis draws the same examples every time.
    arguments = ["-q", "-n0", "--timeout=0", "-p", "no:cacheprovider", "-m", "not nightly"]
    sys.exit(pytest.main([*arguments, *options.tests], plugins=[Room(options)]))
