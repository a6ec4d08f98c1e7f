"""Versions that must match on every node, so that results do not depend on the node."""

from __future__ import annotations

import functools
import platform
import socket
from collections.abc import Mapping

import numpy as np

from evergrow import _core
from evergrow.foundation.errors import ClusterError
from evergrow.foundation.version import __version__

# From the name of a component to its version.
Versions = Mapping[str, str]

_KERNELS = "instruction set"


@functools.cache
def local_versions() -> Versions:
    """Return the versions of this process."""
    return {
        "Python": platform.python_version(),
        "Evergrow": __version__,
        "NumPy": np.__version__,
        # Kernels for different processors add in different orders and round differently.
        _KERNELS: _core.chosen_kernel(),
    }


def check_nodes(here: Versions, nodes: Mapping[str, Versions]) -> None:
    """Raise a ``ClusterError`` that lists the nodes whose versions differ from those here.

    >>> check_nodes({"Python": "3.12.1"}, {"node 7": {"Python": "3.12.1"}})
    >>> check_nodes({"Python": "3.12.1"}, {"node 7": {"Python": "3.11.2"}})
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.ClusterError: the nodes have different versions: ... 3.12.1, but
      node 7 has Python 3.11.2
    Install the same versions on every node.
    """
    lines, wrong = [], set()
    for node, found in nodes.items():
        different = [component for component in here if found.get(component) != here[component]]
        if different:
            wrong.update(different)
            has = ", ".join(
                f"{component} {found.get(component, '(none)')}" for component in different
            )
            lines.append(f"  {node} has {has}")
    if not lines:
        return
    ours = ", ".join(f"{component} {here[component]}" for component in here if component in wrong)
    advice = ["Install the same versions on every node."] if wrong - {_KERNELS} else []
    if _KERNELS in wrong:
        advice.append(
            "Set EVERGROW_ISA, here and where Ray is started, to one that every processor has."
        )
    text = "\n".join([*lines, " ".join(advice)])
    raise ClusterError(f"the nodes have different versions: here is {ours}, but\n{text}")


@functools.cache
def _checked(expected: tuple[tuple[str, str], ...]) -> None:
    check_nodes(dict(expected), {f"node {socket.gethostname()}": local_versions()})


def check_here(expected: Versions) -> None:
    """Check the versions on a worker, whose node may have joined after the first check."""
    _checked(tuple(expected.items()))
