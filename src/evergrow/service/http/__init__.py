"""The HTTP server: routes, limits, tokens, and the thread that writes to the workspace."""

from importlib.util import find_spec

from evergrow.foundation.extras import install_command

for _module in ("fastapi", "prometheus_client", "python_multipart", "uvicorn"):
    if find_spec(_module) is None:
        raise ImportError(
            f"the service needs the module {_module}: {install_command('service')}",
            name=_module,
        )
