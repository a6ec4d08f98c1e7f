"""Which members of a class its page describes."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.autosummary import import_by_name


def skip_member(app: Sphinx, _: str, name: str, member: Any, skip: bool, __: Any) -> bool | None:
    """Leave out what is described elsewhere.

    That is what a class has from scikit-learn or Python, and the attributes that its docstring
    lists, which may be properties with a docstring of their own.
    """
    page = PurePosixPath(app.env.docname or "").name
    if skip or not page:
        # Autosummary asks too, before there is a page.
        return None
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    if not (getattr(function, "__module__", None) or "").startswith("evergrow"):
        return True
    listed = rf"^ *(\w+, )*{name}(, \w+)* : "
    described = re.search(listed, import_by_name(page)[1].__doc__ or "", re.MULTILINE)
    return True if described else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the function."""
    app.connect("autodoc-skip-member", skip_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
