"""Run tests of the core under sanitizers: ``python -m tests.sanitized address|thread|forged``.

``make sanitize`` builds the core under sanitizers in ``build/address`` and ``build/thread``. It is
loaded here under its own name, before the package finds the installed one.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

_NAME = "evergrow._core"
_PYTEST = ("pytest", "-n", "0", "-q")
# By run: the build folder, the library of the sanitizer, and the module with its arguments.
_RUNS = {
    "address": (
        "address",
        "libasan.so",
        (
            *_PYTEST,
            "tests/estimators/forest/test_twin.py",
            "tests/estimators/forest/test_updates_twin.py",
            "tests/estimators/forest/test_svm_twin.py",
            "tests/estimators/forest/value/test_forged_trees.py",
            "tests/estimators/linear/test_solver.py",
            "tests/vision/words/erc/test_reference.py",
            "tests/test_core_threads.py",
            "tests/fuzz/test_corpus.py",
        ),
    ),
    "forged": ("address", "libasan.so", ("tests.fuzz", "forged", "--sanitized", "--count", "100")),
    "thread": ("thread", "libtsan.so", (*_PYTEST, "tests/test_core_threads.py")),
}
_ENVIRONMENT = {
    # Python never gives back all its memory, so leaks are not looked for.
    "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "EVERGROW_TESTS": "quick",
}


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


def _library(name: str) -> str:
    command = [os.environ.get("CXX", "c++"), f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _start(name: str) -> int:
    """Start the process of a run.

    The library of a sanitizer must be the first in the process, and then that of C++: otherwise it
    does not see exceptions.
    """
    preload = f"{_library(_RUNS[name][1])} {_library('libstdc++.so')}"
    environment = {**os.environ, **_ENVIRONMENT, "LD_PRELOAD": preload}
    command = [sys.executable, "-m", "tests.sanitized", name, "started"]
    return subprocess.run(command, env=environment, check=False).returncode


def _run(name: str) -> None:
    folder, _, (module, *arguments) = _RUNS[name]
    core = sanitized_core(Path("build") / folder)
    use_core(core)
    # The package may have been imported by a plugin with a core of its own.
    from evergrow import _core

    if Path(_core.__file__ or "") != core:
        raise SystemExit(f"the package has the core {_core.__file__}, not {core}")
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    if sys.argv[2:] == ["started"]:
        _run(sys.argv[1])
    else:
        sys.exit(_start(sys.argv[1]))
