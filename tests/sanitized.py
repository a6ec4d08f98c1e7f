"""Run a module with the core of another build: ``python -m tests.sanitized BUILD MODULE [ARGS]``.

For builds under sanitizers, whose run-time library must come before all others in the process:
``make sanitize`` sets LD_PRELOAD. The core is loaded here under its own name, before the package
finds the installed one.
"""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

_NAME = "evergrow._core"


def use_core(path: Path) -> None:
    """Make this file the core of the package in this process."""
    spec = importlib.util.spec_from_file_location(_NAME, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a compiled module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = module
    spec.loader.exec_module(module)


def sanitized_core(folder: Path) -> Path:
    """The core in a build folder; one without a sanitizer is refused, as it would show nothing."""
    found = list(folder.resolve().glob("_core.*"))
    if len(found) != 1:
        raise SystemExit(f"there must be one compiled core in {folder}, got {len(found)}")
    content = found[0].read_bytes()
    if not any(name in content for name in (b"__asan_init", b"__tsan_init")):
        raise SystemExit(f"{found[0]} was built without a sanitizer")
    return found[0]


def main() -> None:
    """Load the core and run the module."""
    folder, module, *arguments = sys.argv[1:]
    core = sanitized_core(Path(folder))
    use_core(core)
    # The package may have been imported by a plugin with a core of its own.
    from evergrow import _core

    if Path(_core.__file__ or "") != core:
        raise SystemExit(f"the package has the core {_core.__file__}, not {core}")
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
