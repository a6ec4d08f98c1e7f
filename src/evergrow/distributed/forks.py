"""Detects forked processes, which inherit a connection to Ray that they must not use.

Parent and child would give their objects the same names and receive each other's results.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from evergrow.foundation.errors import ClusterError

# The process whose connection to Ray this one inherited, if any.
_inherited_from: list[int] = []


def _note_fork() -> None:
    ray: Any = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        _inherited_from.append(os.getppid())


# Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def is_forked() -> bool:
    """Whether this process was forked from one that was connected to Ray."""
    return bool(_inherited_from)


def check_not_forked() -> None:
    """Raise a ``ClusterError`` in a forked process, before Ray is used."""
    if is_forked():
        raise ClusterError(
            "this process was forked inside evergrow.cluster, or while connected to Ray, from "
            f"process {_inherited_from[0]}, whose connection it cannot use: start processes with "
            "the method 'spawn', or do their work in evergrow.cluster(None)"
        )
