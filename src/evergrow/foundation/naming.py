"""Names of files and other sources in messages."""

from __future__ import annotations

import os

import numpy as np

from evergrow.foundation.formatting import printable


def display_name(source: object) -> str:
    """Return the name of a source for messages."""
    named = source if isinstance(source, (str, os.PathLike)) else _file_name(source)
    if named is not None:
        return f"'{printable(os.fsdecode(named))}'"
    if isinstance(source, (bytes, bytearray, memoryview)):
        return f"<{len(source)} bytes>"
    if isinstance(source, np.ndarray):
        return f"<array of shape {source.shape}>"
    if hasattr(source, "size") and hasattr(source, "mode"):
        return f"<image of size {source.size}>"
    return f"<{type(source).__name__}>"


def _file_name(source: object) -> str | None:
    # Open files have a name, Pillow's images a filename.
    for attribute in ("filename", "name"):
        name = getattr(source, attribute, None)
        if isinstance(name, str) and name:
            return name
    return None
