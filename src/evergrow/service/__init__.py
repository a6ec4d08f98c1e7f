"""A workspace over HTTP, and a page to teach it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evergrow.service.app import create_app
    from evergrow.service.serving import serve
    from evergrow.service.settings import Settings
    from evergrow.service.state import Service

__all__ = ["Service", "Settings", "create_app", "serve"]

# Imported when first asked for: decoders live in this package and start without a web server.
_HOMES = {
    "Service": "evergrow.service.state",
    "Settings": "evergrow.service.settings",
    "create_app": "evergrow.service.app",
    "serve": "evergrow.service.serving",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'evergrow.service' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name in ("fastapi", "prometheus_client", "python_multipart", "uvicorn"):
            raise ImportError(
                f'a service needs the module {error.name}: pip install "evergrow[service]"'
            ) from error
        raise
