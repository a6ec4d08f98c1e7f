"""Targets tell faults from refusals, and their mutations get past the hashes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

import evergrow
from evergrow import ModelFileError
from tests.budget import budget
from tests.fuzz import forged
from tests.fuzz.files import decode, encode
from tests.fuzz.models import KINDS, files_of
from tests.fuzz.targets import NAMES, target

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux", reason="children are forked and their memory is read from /proc"
    ),
]
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", NAMES)
def test_mutations_differ_and_are_refused_or_work(name: str) -> None:
    found, random = target(name), Random(0)
    seeds = list(found.seeds().values())
    changed = [found.mutate(random.choice(seeds), random) for _ in range(budget(20))]
    assert len({*changed} - {*seeds}) > len(changed) // 2
    for content in changed:
        found.run(content)


@pytest.mark.parametrize("kind", KINDS)
def test_forged_files_are_refused_or_work(kind: str) -> None:
    count = max(50, budget(100))
    tally = forged.run(kind, seed=1, first=0, count=count)
    assert tally.files == count
    assert tally.n_faults == 0, tally
    assert tally.refused > 0
    assert tally.accepted > 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_saved_can_be_loaded(kind: str, tmp_path: Path) -> None:
    for content in files_of(kind):
        decoded = decode(content)
        assert decoded is not None
        assert encode(*decoded) == content
        path = tmp_path / "model.evergrow"
        path.write_bytes(content)
        evergrow.load(path)


def test_random_bytes_are_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.evergrow"
    path.write_bytes(Random(0).randbytes(1000))
    with pytest.raises(ModelFileError):
        evergrow.load(path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_ten_seconds_of_fuzzing_find_code_and_no_fault(name: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="Atheris has no wheel for this Python or system")
    command = [sys.executable, "-m", "tests.fuzz", "run", name, "--faults", str(tmp_path)]
    ended = subprocess.run(
        # With one seed, the same change of the code fails each time; `make fuzz` draws others.
        [*command, "--seconds", "10", "--seed", "1"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
    )
    output = ended.stdout + ended.stderr
    assert ended.returncode == 0, output[-5000:]
    # Without instrumented code libFuzzer runs too, but is guided by nothing.
    covered = [int(n) for n in re.findall(r"cov: ([0-9]+)", output)]
    assert covered, output[-5000:]
    assert covered[-1] >= 20
