"""Links from an estimator to its documentation, which scikit-learn shows in notebooks."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata

# In this order, because a name of a room may be one of the package too.
_PUBLIC = ("evergrow", "evergrow.estimators", "evergrow.vision")


class DocLinkMixin:
    """Adds the link of an estimator to its page of the API, as scikit-learn's diagrams show it.

    The address is the project URL ``Documentation`` in the metadata of the installed package. If
    the package does not name one, no link is shown.
    """

    _doc_link_module = "evergrow"

    @property
    def _doc_link_template(self) -> str:
        address = documentation_address()
        return f"{address}/api/{{name}}.html" if address else ""

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        kind = type(self)
        for module in _PUBLIC:
            if getattr(import_module(module), kind.__name__, None) is kind:
                return {"name": f"{module}.{kind.__name__}"}
        return {"name": f"{kind.__module__}.{kind.__name__}"}


@cache
def documentation_address() -> str:
    """Return the address of the documentation, empty if the package does not name one."""
    try:
        urls = metadata("evergrow").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    addresses: dict[str, str] = dict(url.split(", ", 1) for url in urls)
    return addresses.get("Documentation", "").rstrip("/")
