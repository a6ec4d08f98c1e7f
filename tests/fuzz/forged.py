"""Many forged model files of each kind: every one is refused or works.

Files are made from a seed and a number, so that each can be made again. They are used in a forked
process that is replaced when it dies: crashes and hangs are counted, and end nothing else.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.files import decode, encode
from tests.fuzz.models import files_of
from tests.fuzz.mutations import mutate
from tests.fuzz.use import load_or_refuse, use

SECONDS = 5.0
# What docs/model_files.md promises: this many times the size of the file, and this much.
FREE_BYTES = 128 << 20
_ADDRESS_SPACE = 6 << 30
# Saving waits for the disk, which takes longer than all else.
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass
class Tally:
    """What became of the forged files of one kind."""

    kind: str
    files: int = 0
    refused: int = 0
    accepted: int = 0
    hangs: int = 0
    seconds: float = 0.0
    multiple: float = 0.0
    growth: int = 0
    crashes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    # The first file of each fault.
    numbers: dict[str, int] = field(default_factory=dict)

    def note(self, where: Counter[str], fault: str, number: int) -> None:
        where[fault] += 1
        self.numbers.setdefault(fault, number)

    @property
    def n_faults(self) -> int:
        return self.hangs + self.crashes.total() + self.errors.total()


def forge(kind: str, seed: int, number: int) -> bytes:
    """Forged file ``number`` of a kind."""
    random = Random(f"{kind}/{seed}/{number}")
    content = decode(random.choice(files_of(kind)))
    assert content is not None
    return encode(*mutate(*content, random))


def run(kind: str, seed: int, first: int, count: int, *, limit_memory: bool = True) -> Tally:
    """Use forged files in child processes and count what happens."""
    files_of(kind)
    tally, began = Tally(kind), time.monotonic()
    with tempfile.TemporaryDirectory(dir=_MEMORY) as folder:
        number, last = first, first + count
        while number < last:
            number = _run_child(tally, seed, number, last, Path(folder), limit_memory)
    tally.seconds = time.monotonic() - began
    return tally


def _run_child(
    tally: Tally, seed: int, first: int, last: int, folder: Path, limit_memory: bool
) -> int:
    """Let a child go on from a file until it is done or dies; the number of the next file."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _work(tally.kind, seed, range(first, last), folder, writing, limit_memory)
    os.close(writing)
    number = first
    with os.fdopen(reading) as lines:
        for line in lines:
            _count(tally, number, json.loads(line))
            number += 1
    _, status = os.waitpid(child, 0)
    if number == last:
        return last
    tally.files += 1
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        tally.hangs += 1
        tally.numbers.setdefault("hang", number)
    else:
        tally.note(tally.crashes, f"status {status}", number)
    return number + 1


def _work(
    kind: str, seed: int, numbers: range, folder: Path, writing: int, limit_memory: bool
) -> None:
    """The child: one line of JSON per file."""
    status = 1
    try:
        if limit_memory:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for number in numbers:
            content = forge(kind, seed, number)
            # The default action ends the process, whatever code is running.
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            result = attempt(content, folder)
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.write(writing, json.dumps(result).encode() + b"\n")
        status = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(status)


def attempt(content: bytes, folder: Path) -> dict[str, Any]:
    """Load and use one file."""
    path = folder / "forged.evergrow"
    path.write_bytes(content)
    result: dict[str, Any] = {"accepted": False, "error": None, "size": len(content)}
    before = _peak_memory(reset=True)
    try:
        model = load_or_refuse(str(path))
        result["growth"] = _peak_memory() - before
        result["accepted"] = model is not None
        if model is not None:
            use(model, str(folder / "again.evergrow"))
    except BaseException as error:  # noqa: BLE001
        result["error"] = _signature(error)
    return result


def _count(tally: Tally, number: int, result: dict[str, Any]) -> None:
    tally.files += 1
    tally.accepted += result["accepted"]
    tally.refused += not result["accepted"]
    if result["error"] is not None:
        tally.note(tally.errors, result["error"], number)
    growth = result.get("growth", 0)
    tally.growth = max(tally.growth, growth)
    tally.multiple = max(tally.multiple, (growth - FREE_BYTES) / result["size"])


def _signature(error: BaseException) -> str:
    """The kind of error, its message and the last lines of Evergrow's that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/evergrow/" in frame.filename] or list(frames)
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in own[-3:]]
    return f"{type(error).__name__}: {str(error)[:100]} ({' > '.join(places)})"


def _peak_memory(*, reset: bool = False) -> int:
    """The largest resident memory of this process so far, in bytes; or the current one, reset."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0
