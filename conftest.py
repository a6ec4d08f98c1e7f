"""How the tests run: one cache per run, tiers, and which tests share a worker."""

from __future__ import annotations

import faulthandler
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

# Every worker runs next to others: idle threads of linear algebra would spin in their way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A job in the background of a shell ignores Ctrl-C; tests that interrupt themselves would fail.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent

PACKAGE = Path(getattr(find_spec("evergrow"), "origin", "")).parent

# pytest imports modules to find their examples. Triton comes with torch's builds for GPUs only, and
# the modules and the page of the integrations need their programs.
IMPORTING = {
    "triton": [PACKAGE / "estimators/forest/device/kernels.py"],
    # Of the page on embeddings.
    "datasets": [ROOT / "docs/embeddings.md"],
    "onnxscript": [ROOT / "docs/embeddings.md"],
    "torch": [ROOT / "docs/embeddings.md"],
    "transformers": [ROOT / "docs/embeddings.md"],
    "sphinx": [ROOT / "docs/conf.py"],
    "river": [PACKAGE / "integrations/river.py", ROOT / "docs/integrations.md"],
    "mlflow": [
        PACKAGE / "integrations/mlflow.py",
        PACKAGE / "mlflow.py",
        ROOT / "docs/integrations.md",
    ],
}
# Copies of the gallery that `make docs` makes, and
# extensions of Sphinx, which import each other from the folder that docs/conf.py adds to the path.
collect_ignore_glob = ["docs/_build/*", "docs/_extensions/*", "docs/gallery/*"]
# A test that holds Python's lock stops the timer of pytest-timeout too, and a process may hang
# after its last test. Then a thread outside of Python prints all stacks and ends the process.
HANGING_TEST = 330.0
HANGING_END = 180.0
STDERR = pytest.StashKey[int]()

# `make quick` leaves out tests that are marked as slow, `make test` those that are marked as
# nightly, and `make nightly` none. Tests that use one of these fixtures are slow too. Those of
# browsers and clusters run on one worker, one after the other: nodes of a cluster come and go with
# interfaces of the network, and a browser gives up what it loads when these change.
SLOW_FIXTURES = {
    "chromium": "network",
    "firefox": "network",
    "measuring_data": None,
    "two_nodes": "network",
}
# Tests that use one of these fixtures, or whose module imports one of these names, are nightly:
# they need programs that `make nightly` installs, or a second browser.
NIGHTLY_NAMES = {"firefox", "library_folder", "mlflow", "torch"}
# MLflow and transformers warn of their own future, and of that of what they import.
WARNING_PATHS = (
    "docs/embeddings.md",
    "docs/integrations.md",
    "tests/integrations/test_mlflow.py",
)
# Tests of this marker run the code of GPUs on a GPU; others run it by torch on the processor.
GPU = "gpu"


def pytest_configure(config: pytest.Config) -> None:
    """Use one cache folder for the whole run, and never the user's.

    The workers of pytest-xdist inherit it, so a network is converted once per run.
    """
    config.addinivalue_line("markers", "slow: `make quick` leaves it out")
    config.addinivalue_line("markers", "nightly: only `make nightly` runs it")
    # Not by `collect_ignore`: an installed package lies outside of this folder.
    config.option.ignore = [*(config.option.ignore or ()), *map(str, _not_collected())]
    # Output of tests is captured; stacks of a hanging one must get past that.
    config.stash[STDERR] = os.dup(2)
    config.addinivalue_line("markers", f"{GPU}: needs a GPU that torch finds, skipped without one")
    if not hasattr(config, "workerinput"):
        cache = tempfile.mkdtemp(prefix="evergrow-tests-")
        os.environ["EVERGROW_CACHE"] = cache
        config.add_cleanup(lambda: shutil.rmtree(cache, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests, choose the worker of each test, and run slow ones first."""
    for item in items:
        shared = [SLOW_FIXTURES[name] for name in _fixtures(item) if name in SLOW_FIXTURES]
        if _is_nightly(item):
            item.add_marker("nightly")
        # Pages of the documentation run all their examples.
        if shared or item.path.suffix == ".md":
            item.add_marker("slow")
        if item.path.as_posix().endswith(WARNING_PATHS):
            item.add_marker(pytest.mark.filterwarnings("ignore"))
        # The tests of one file share its fixtures.
        worker = next((name for name in shared if name), str(item.path))
        item.add_marker(pytest.mark.xdist_group(worker))
    items.sort(key=_place)
    for item in _repeated_checks(items):
        item.add_marker("slow")
    _skip_without_gpu([item for item in items if item.get_closest_marker(GPU)])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process if a test hangs so that nothing in Python can end it."""
    faulthandler.dump_traceback_later(HANGING_TEST, exit=True, file=item.config.stash[STDERR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name long values by their start: names of tests travel between processes."""
    return f"{val[:40]!r}..." if isinstance(val, str | bytes) and len(val) > 100 else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End a worker that does not end by itself; the process that reports has no limit."""
    if hasattr(session.config, "workerinput"):
        stderr = session.config.stash[STDERR]
        faulthandler.dump_traceback_later(HANGING_END, exit=True, file=stderr)


def pytest_collection_finish() -> None:
    """Hide the thousands of collected tests from the garbage collector: they live until the end."""
    gc.collect()
    gc.freeze()


def _not_collected() -> Iterator[Path]:
    for package, paths in IMPORTING.items():
        if find_spec(package) is None:
            yield from paths


def _place(item: pytest.Item) -> int:
    """The longest row of tests that share a worker comes first, then the other slow ones."""
    if item.get_closest_marker("slow") is None:
        return 2
    return int("network" not in {SLOW_FIXTURES.get(name) for name in _fixtures(item)})


def _fixtures(item: pytest.Item) -> tuple[str, ...]:
    return tuple(getattr(item, "fixturenames", ()))


def _is_nightly(item: pytest.Item) -> bool:
    names = {*_fixtures(item), *vars(getattr(item, "module", item))}
    return bool(names & NIGHTLY_NAMES) or any(
        item.path in paths for package, paths in IMPORTING.items() if package != "river"
    )


def _skip_without_gpu(items: list[pytest.Item]) -> None:
    """Skip tests of GPUs where there is none; torch is imported only if there are such tests."""
    if not items:
        return
    try:
        import torch
    except ImportError:
        reason = "torch is not installed"
    else:
        reason = "" if torch.cuda.is_available() else "torch finds no GPU"
    for item in items if reason else ():
        item.add_marker(pytest.mark.skip(reason=reason))


def _repeated_checks(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """scikit-learn's checks of an estimator's second and later configurations."""
    first: dict[type, str] = {}
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if {"estimator", "check"} <= parameters.keys():
            estimator = parameters["estimator"]
            if first.setdefault(type(estimator), repr(estimator)) != repr(estimator):
                yield item
