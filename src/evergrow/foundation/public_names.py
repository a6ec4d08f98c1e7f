"""Public names of a package, imported at first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lazy_loader import attach_stub


def attach_names(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its ``__init__.pyi``.

    An unknown name is refused in Python's own words, which lazy_loader does not use.
    """
    import_name, list_names, names = attach_stub(package, file)

    def get_name(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_name(name)

    return get_name, list_names, names
