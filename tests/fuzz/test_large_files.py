"""Loading a forged file of some megabytes takes the memory that docs/model_files.md states."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import ERCForest, ModelFileError, NCMForestClassifier, RLSClassifier
from evergrow.estimators import ReLU
from evergrow.storage.models.pipelines import to_file
from tests.fuzz.files import decode, encode
from tests.fuzz.mutations import mutate

# Of the size of the file; what is allowed beyond 128 MB in any case.
MULTIPLE = 40
N_FORGED = 30

_RNG = np.random.default_rng(0)
Y = _RNG.integers(0, 100, 8000)
X = (2 * _RNG.normal(size=(100, 64))[Y] + _RNG.normal(size=(8000, 64))).astype(np.float32)
MODELS: dict[str, Callable[[], Any]] = {
    "forest": lambda: NCMForestClassifier(8, random_state=0).fit(X, Y),
    "least squares": lambda: RLSClassifier(features=ReLU(800), random_state=0).fit(X, Y),
    "clustering forest": lambda: ERCForest(4, n_words=2000, random_state=0).fit(X, Y),
}


def growth_of_loading(path: Path) -> int:
    """Bytes by which the largest memory of a process grew when it loaded a file."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        before = memory("VmRSS")
        try:
            evergrow.load(path)
        except ModelFileError:
            pass
        except BaseException as error:  # noqa: BLE001
            os.write(writing, json.dumps(repr(error)).encode())
            os._exit(1)
        os.write(writing, json.dumps(memory("VmHWM") - before).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        found = json.loads(pipe.read() or b'"it crashed"')
    os.waitpid(child, 0)
    assert isinstance(found, int), found
    return found


def memory(name: str) -> int:
    (kilobytes,) = re.findall(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(kilobytes)


def most_memory(kind: str, path: Path) -> float:
    """The largest growth over forged files, as a multiple of their size."""
    honest = encode(*to_file(MODELS[kind]()))
    assert len(honest) > 1_000_000
    most = 0.0
    for number in range(N_FORGED):
        content = decode(honest)
        assert content is not None
        path.write_bytes(encode(*mutate(*content, Random(f"{kind}/{number}"))))
        most = max(most, growth_of_loading(path) / path.stat().st_size)
    return most


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize(
    "kind",
    ["forest", *(pytest.param(k, marks=pytest.mark.nightly) for k in MODELS if k != "forest")],
)
def test_memory_is_a_small_multiple_of_a_large_file(kind: str, tmp_path: Path) -> None:
    # In a process of its own: a process with the threads of other tests must not fork.
    command = [sys.executable, "-m", __name__, kind, str(tmp_path / "forged.evergrow")]
    ended = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert ended.returncode == 0, ended.stderr
    assert float(ended.stdout) < MULTIPLE


if __name__ == "__main__":
    sys.stdout.write(str(most_memory(sys.argv[1], Path(sys.argv[2]))))
