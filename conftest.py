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
    "river": [PACKAGE / "integrations/river.py", ROOT / "docs/integrations.md"],
    "mlflow": [
        PACKAGE / "integrations/mlflow.py",
        PACKAGE / "mlflow.py",
        ROOT / "docs/integrations.md",
    ],
}
# Copies of the gallery that `make docs` makes (tests/test_gallery.py runs the originals), and
# extensions of Sphinx, which import each other from the folder that docs/conf.py adds to the path.
collect_ignore_glob = ["docs/_build/*", "docs/_extensions/*", "docs/gallery/*"]
# These tests read the sources. An installed wheel is tested in a folder without them.
OF_SOURCES = ("cpp_layout", "deploy", "docs_numbers", "docs_output", "docs_paths", "release")

# A test that holds Python's lock stops the timer of pytest-timeout too, and a process may hang
# after its last test. Then a thread outside of Python prints all stacks and ends the process.
HANGING_TEST = 330.0
HANGING_END = 180.0
STDERR = pytest.StashKey[int]()

# Slow tiers: a test belongs to one if it uses one of these fixtures or lies under one of these
# paths. `make quick` leaves them out; `make test` runs everything.
FIXTURE_TIERS = {
    "chromium": "browser",
    "measuring_data": "papers",
    "two_nodes": "ray",
}
PATH_TIERS = {
    "docs": "guides",
    "tests/cli/test_experiment.py": "process",
    "tests/cli/test_main.py": "process",
    "tests/service/client/test_real_service.py": "process",
    "tests/distributed/test_": "ray",
    "tests/research/papers": "papers",
    "tests/estimators/forest/test_endurance.py": "process",
    "tests/export/html/test_firefox.py": "browser",
    "tests/export/html/test_page.py": "browser",
    "tests/export/onnx/test_examples.py": "process",
    "tests/estimators/forest/storage/test_memory_limit_processes.py": "process",
    "tests/estimators/forest/test_threads.py": "process",
    "tests/fuzz/test_targets.py": "process",
    "tests/service/label_studio/test_real_server.py": "process",
    "tests/service/page/": "browser",
    "tests/service/http/test_broken_downloads.py": "process",
    "tests/service/http/test_server.py": "process",
    "tests/service/http/test_crashes.py": "process",
    "tests/service/http/test_malicious_images.py": "process",
    "tests/storage/shards/test_interrupted.py": "process",
    "tests/storage/shards/test_killed.py": "process",
    "tests/test_docs_commands.py": "guides",
    "tests/test_docs_formats.py": "guides",
    "tests/test_gallery.py": "guides",
    "tests/test_kernels.py": "process",
    "tests/test_docs_site.py": "guides",
    "tests/test_readme.py": "guides",
    "tests/test_tutorials.py": "guides",
    "tests/workspace/test_crashes.py": "process",
    "tests/workspace/test_full_disk.py": "process",
}
# MLflow and transformers warn of their own future, and of that of what they import.
WARNING_PATHS = (
    "docs/embeddings.md",
    "docs/integrations.md",
    "tests/integrations/test_mlflow.py",
)
# Tests that are marked as slow, and scikit-learn's checks of further configurations.
OTHER_TIERS = ("configurations", "slow")
# Tests of this marker run the code of GPUs on a GPU; others run it by torch on the processor.
GPU = "gpu"
# Tests of these tiers share one cluster or browser, so they run on one worker, one after the other.
SHARED_TIERS = ("ray", "browser")


def pytest_configure(config: pytest.Config) -> None:
    """Use one cache folder for the whole run, and never the user's.

    The workers of pytest-xdist inherit it, so a network is converted once per run.
    """
    for tier in sorted({*FIXTURE_TIERS.values(), *PATH_TIERS.values(), *OTHER_TIERS}):
        config.addinivalue_line("markers", f"{tier}: a slow tier that `make quick` leaves out")
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
    """Mark the tiers of each test, choose its worker, and run the slow tiers first."""
    tiers = {item: _tiers_of(item) for item in items}
    for item in _repeated_checks(items):
        tiers[item].add("configurations")
    for item, names in tiers.items():
        for name in names:
            item.add_marker(name)
        if item.path.as_posix().endswith(WARNING_PATHS):
            item.add_marker(pytest.mark.filterwarnings("ignore"))
        # The tests of one file share its fixtures.
        worker = next((tier for tier in SHARED_TIERS if tier in names), str(item.path))
        item.add_marker(pytest.mark.xdist_group(worker))
    _skip_without_gpu([item for item in items if item.get_closest_marker(GPU)])
    items.sort(key=lambda item: not tiers[item] - {"configurations"})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process if a test hangs so that nothing in Python can end it."""
    faulthandler.dump_traceback_later(HANGING_TEST, exit=True, file=item.config.stash[STDERR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


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
    if not (ROOT / "src").exists():
        yield from (ROOT / f"tests/test_{name}.py" for name in OF_SOURCES)


def _tiers_of(item: pytest.Item) -> set[str]:
    fixtures = getattr(item, "fixturenames", ())
    path = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else ""
    by_path = {tier for start, tier in PATH_TIERS.items() if path.startswith(start)}
    by_fixture = {FIXTURE_TIERS[name] for name in fixtures if name in FIXTURE_TIERS}
    return by_path | by_fixture | ({"slow"} if item.get_closest_marker("slow") else set())


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
