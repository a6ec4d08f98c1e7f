"""What must be the same on every node, or results would depend on where they were computed."""

from __future__ import annotations

import functools
import platform
import socket
from collections.abc import Mapping

import numpy as np

from evergrow import _core
from evergrow.foundation.errors import ClusterError
from evergrow.foundation.version import __version__

__all__ = ["Versions", "check_here", "check_nodes", "versions_here"]

# From the name of a thing to its version.
Versions = Mapping[str, str]

_KERNELS = "instruction set"


@functools.cache
def versions_here() -> Versions:
    """The versions of this process."""
    return {
        "Python": platform.python_version(),
        "Evergrow": __version__,
        "NumPy": np.__version__,
        # Kernels for different processors add in different orders and round differently.
        _KERNELS: _core.chosen_kernel(),
    }


def check_nodes(here: Versions, nodes: Mapping[str, Versions]) -> None:
    """Raise a ``ClusterError`` that lists the nodes whose versions are not those of here.

    >>> check_nodes({"Python": "3.12.1"}, {"node 7": {"Python": "3.12.1"}})
    >>> check_nodes({"Python": "3.12.1"}, {"node 7": {"Python": "3.11.2"}})
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.ClusterError: not every node can do this work: ... 3.12.1, but
      node 7 has Python 3.11.2
    Install the same versions on every node.
    """
    lines, wrong = [], set()
    for node, found in nodes.items():
        different = [thing for thing in here if found.get(thing) != here[thing]]
        if different:
            wrong.update(different)
            has = ", ".join(f"{thing} {found.get(thing, '(none)')}" for thing in different)
            lines.append(f"  {node} has {has}")
    if not lines:
        return
    ours = ", ".join(f"{thing} {here[thing]}" for thing in here if thing in wrong)
    advice = ["Install the same versions on every node."] if wrong - {_KERNELS} else []
    if _KERNELS in wrong:
        advice.append(
            "Set EVERGROW_ISA, here and where Ray is started, to one that every processor has."
        )
    text = "\n".join([*lines, " ".join(advice)])
    raise ClusterError(f"not every node can do this work: here is {ours}, but\n{text}")


@functools.cache
def _checked(expected: tuple[tuple[str, str], ...]) -> None:
    check_nodes(dict(expected), {f"node {socket.gethostname()}": versions_here()})


def check_here(expected: Versions) -> None:
    """The same check on a worker: its node may have joined after all others were asked."""
    _checked(tuple(expected.items()))
