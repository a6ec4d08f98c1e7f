"""Optional packages of the extra ``vision``."""

from __future__ import annotations

import importlib
from typing import Any


def import_extra(name: str) -> Any:
    """Import a module of the extra ``vision``; the error says what to install if it is missing.

    >>> import_extra("no_such_module")
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
