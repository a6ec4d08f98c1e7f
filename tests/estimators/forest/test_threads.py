"""Training can be interrupted, and predicting goes on while it runs."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evergrow
from evergrow import NCMForestClassifier
from evergrow.estimators.forest import predictor
from tests.conftest import FORESTS, Arrays

INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from evergrow import {kind} as Forest

# A background job inherits a SIGINT that is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

rng = np.random.default_rng(0)
X, y = rng.normal(size=(20000, 256)).astype(np.float32), rng.integers(0, 50, 20000)
forest = Forest(2, n_jobs={n_jobs}, random_state=0).fit(X[:500], y[:500])
before, state = forest.predict_proba(X[:50]), dict(vars(forest))
forest.set_params(n_estimators=60000)
state["n_estimators"] = 60000
asked = []

def interrupt():
    asked.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(0.7, interrupt).start()
try:
    forest.fit(X, y)
except KeyboardInterrupt:
    waited = time.perf_counter() - asked[0]
    assert waited < 1.0, waited
    assert vars(forest) == state
    assert (forest.predict_proba(X[:50]) == before).all()
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
@pytest.mark.parametrize(
    ("kind", "n_jobs"), [(NCMForestClassifier, 1), *((kind, 2) for kind in FORESTS)]
)
def test_ctrl_c_stops_within_a_second_and_changes_nothing(kind: Any, n_jobs: int) -> None:
    code = INTERRUPTED.format(kind=kind.__name__, n_jobs=n_jobs)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "interrupted\n", done.stderr


def test_readers_see_the_forest_before_or_after_a_fit(digits: Arrays) -> None:
    X, X_test, y, _ = digits
    shifted = (y + 1) % 10
    forests = [NCMForestClassifier(20, random_state=0).fit(X, target) for target in (y, shifted)]
    allowed = {forest.predict_proba(X_test).tobytes() for forest in forests}
    forest = NCMForestClassifier(20, random_state=0).fit(X, y)
    seen: list[bytes] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(forest.predict_proba(X_test).tobytes())

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for round_ in range(6):
        forest.fit(X, (y, shifted)[round_ % 2])
    done.set()
    for reader in readers:
        reader.join()
    assert seen
    assert set(seen) <= allowed


HUGE_NODES = """
import os, signal, threading, time
import numpy as np
import evergrow

# A background job inherits a SIGINT that is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

rng = np.random.default_rng(0)
X, y = rng.normal(size=(40000, 256)).astype(np.float32), rng.integers(0, 1000, 40000)
asked = []

def interrupt():
    asked.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(0.5, interrupt).start()
try:
    # One tree that takes many seconds, with nodes that take long on their own.
    evergrow.{forest}.fit(X, y)
except KeyboardInterrupt:
    waited = time.perf_counter() - asked[0]
    assert waited < 1.0, waited
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
@pytest.mark.parametrize(
    "forest",
    [
        "NCMForestClassifier(1, n_centroids=1.0, n_assignments=2**15, random_state=0)",
        "AxisForestClassifier(1, n_candidates=2**20, random_state=0)",
        "LinearForestClassifier(1, n_candidates=2**20, random_state=0)",
        "SVMForestClassifier(1, n_candidates=2**20, random_state=0)",
    ],
)
def test_ctrl_c_stops_within_a_second_inside_a_huge_node(forest: str) -> None:
    code = HUGE_NODES.format(forest=forest)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "interrupted\n", done.stderr


def test_readers_never_see_the_names_of_one_forest_and_the_trees_of_another(
    digits: Arrays,
) -> None:
    X, X_test, y, _ = digits
    names = [f"pixel{i}" for i in range(64)]
    frame, query = pd.DataFrame(X, columns=names), pd.DataFrame(X_test, columns=names)
    mirrored = frame[names[::-1]]
    forest = NCMForestClassifier(3, random_state=0).fit(frame, y)
    expected = forest.predict_proba(query)
    wrong: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                found = forest.predict_proba(query)
            except ValueError:
                continue  # refused by name: the mirrored forest
            if not np.array_equal(found, expected):
                wrong.append(1)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for round_ in range(40):
        forest.fit((frame, mirrored)[round_ % 2], y)
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong


def test_saving_takes_one_look_at_the_forest(
    digits: Arrays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, X_test, y, _ = digits
    names = [f"pixel{i}" for i in range(64)]
    frame, query = pd.DataFrame(X, columns=names), pd.DataFrame(X_test, columns=names)
    forest = NCMForestClassifier(3, random_state=0).fit(frame, y)
    expected = forest.predict_proba(query)
    write = predictor.parameters_to_json

    def refit_first(*args: Any, **options: Any) -> Any:
        forest.fit(frame[names[::-1]], y)
        return write(*args, **options)

    monkeypatch.setattr(predictor, "parameters_to_json", refit_first)
    forest.save(tmp_path / "forest.evergrow")
    loaded = evergrow.load(tmp_path / "forest.evergrow")
    np.testing.assert_array_equal(loaded.predict_proba(query), expected)


def test_an_error_in_the_progress_display_stops_the_work() -> None:
    from evergrow import _core

    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 64)).astype(np.float32)
    y = rng.integers(0, 9, 4000).astype(np.int32)
    samples = _core.Samples(64)
    plain = _core.Standardizer(np.zeros(64), np.ones(64))
    samples.write(samples.add(4000), X, y, np.arange(4000), plain)

    def fail(done: int) -> None:
        raise RuntimeError(f"display broke after {done}")

    start = time.perf_counter()
    with pytest.raises(RuntimeError, match="display broke after"):
        _core.Forest.grow(
            samples=samples,
            n_trees=100000,
            n_classes=9,
            seed=0,
            rows_per_tree=4000,
            bootstrap=False,
            rules={
                "proposer": "ncm",
                "n_centroids": 3,
                "n_candidates": 1024,
                "min_samples_leaf": 10,
                "min_gain": 0.0,
                "regularization": 0.0,
            },
            n_threads=2,
            progress=fail,
        )
    assert time.perf_counter() - start < 10
