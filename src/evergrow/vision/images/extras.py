"""Packages that only images need, and what to install where one is missing."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["vision_module"]


def vision_module(name: str) -> Any:
    """Import a module that comes with the extra ``vision``; say so where it is missing.

    >>> vision_module("no_such_module")
    Traceback (most recent call last):
    ...
    ImportError: images need the module no_such_module: pip install "evergrow[vision]"
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f'images need the module {name}: pip install "evergrow[vision]"'
        ) from error
