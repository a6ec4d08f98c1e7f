"""What a process with a memory limit takes of the machine, and leaves on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ENDED = """
import os, signal, sys
from contextlib import contextmanager
from evergrow import NCMForestClassifier
from evergrow.estimators.forest.change import growth
from evergrow.estimators.forest.storage import budget
import numpy as np

@contextmanager
def ending(*args):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    def end(done):
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    yield end

budget._SLACK = budget._SLACK_PER_THREAD = 0
budget._LEAST_ROWS = 1000
growth.progress_bar = ending
X, y = np.random.default_rng(0).normal(size=(4000, 64)), np.arange(4000) % 20
forest = NCMForestClassifier(200, memory_limit=900_000, random_state=0)
try:
    forest.fit(X, y)
except KeyboardInterrupt:
    assert not hasattr(forest, "classes_")
    print("interrupted", os.listdir(os.environ["TMPDIR"]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "output"),
    [
        pytest.param("SIGKILL", "", marks=pytest.mark.nightly),
        ("SIGINT", "interrupted []\n"),
    ],
)
def test_a_process_that_is_ended_leaves_nothing_on_the_disk(
    name: str, output: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDED, name],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.stdout == output, done.stderr
    assert "Error" not in done.stderr
    assert os.listdir(tmp_path) == []


PEAK = """
import sys, threading, time
import numpy as np
from evergrow import NCMForestClassifier

def private():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024

X, y = np.load(sys.argv[1], mmap_mode="r"), np.arange(40000) % 100
NCMForestClassifier(2, random_state=0).fit(X[:300], y[:300])
peak = [0.0]

def watch():
    while True:
        peak[0] = max(peak[0], private())
        time.sleep(0.005)

def growth(function):
    before = peak[0] = private()
    function()
    return peak[0] - before

threading.Thread(target=watch, daemon=True).start()
forest = NCMForestClassifier(3, memory_limit="56MiB", n_jobs=2, random_state=0)
fitting, saving = growth(lambda: forest.fit(X, y)), growth(lambda: forest.save(sys.argv[2]))
assert forest._fitted.forest.samples.own_nbytes == 0
model = forest.nbytes / 2**20
print(fitting - model, saving - model)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much memory is private")
@pytest.mark.slow
def test_training_and_saving_stay_within_the_limit(tmp_path: Path) -> None:
    X = np.lib.format.open_memmap(
        tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(40000, 640)
    )
    random = np.random.default_rng(0)
    centres = random.normal(size=(100, 640)).astype(np.float32)
    for first in range(0, 40000, 4000):
        X[first : first + 4000] = random.standard_normal((4000, 640), dtype=np.float32)
        X[first : first + 4000] += centres[np.arange(first, first + 4000) % 100]
    X.flush()
    done = subprocess.run(
        [sys.executable, "-c", PEAK, tmp_path / "X.npy", tmp_path / "model"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    fitting, saving = map(float, done.stdout.split())
    # The rows take 100 MiB. Saving has every tree twice, and some rows at a time.
    assert fitting < 56
    assert saving < 56
