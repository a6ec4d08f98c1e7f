"""A decoder that an image takes over can do nothing but compute and answer."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from pathlib import Path

import pytest

from evergrow.service.decoding import decoder, sandbox
from evergrow.service.decoding.decoder import DecoderLimits, DecoderProcess
from evergrow.service.decoding.pool import DecoderPool
from evergrow.service.decoding.protocol import RefusedImageError
from evergrow.vision import Preprocessing
from tests.harness.pictures import picture
from tests.service.decoding import taken_over

PREPROCESSING = Preprocessing(size=16)
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}

has_sandbox = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in sandbox.ARCHITECTURES,
    reason="there is no sandbox for this system",
)
x86_64 = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="the attacks use numbers of Linux on x86_64",
)


def take_over(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> set[str]:
    """Let a decoder attack; return what it managed to do."""
    for name in ("tokens.json", "lesson", "picture", "database"):
        (folder / name).write_text("precious")
    command = (sys.executable, "-m", taken_over.__name__, *arguments)
    monkeypatch.setattr(decoder, "_COMMAND", command)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    plan = {"folder": str(folder), "service": os.getpid()}
    process = DecoderProcess(PREPROCESSING, DecoderLimits())
    found = []
    try:
        for number in range(len(taken_over.attacks(folder, 0))):
            content = taken_over.MARK + json.dumps({**plan, "number": number}).encode()
            with pytest.raises(RefusedImageError) as refused:
                process.decode(content, thumbnail=False)
            found += json.loads(refused.value.reason)
        # It is still able to decode.
        assert process.decode(picture(), thumbnail=True).media_type == "image/jpeg"
    finally:
        process.stop()
    return set(found)


@x86_64
def test_a_decoder_that_is_taken_over_achieves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert take_over(monkeypatch, tmp_path) == set()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "database",
        "lesson",
        "picture",
        "tokens.json",
    ]
    assert {path.read_text() for path in tmp_path.iterdir()} == {"precious"}


@x86_64
def test_without_the_sandbox_the_same_attacks_succeed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done = take_over(monkeypatch, tmp_path, "free")
    assert done >= {
        "read the tokens",
        "look for a file",
        "list a folder",
        "create a file",
        "truncate a file",
        "rename a file",
        "make a folder",
        "link to a file",
        "change rights",
        "open a local socket",
        "open a pipe",
        "limit the service",
        "delete a file",
        "open a socket",
        "start a process",
        "run a program",
        "signal the service",
        "make executable memory",
        "make memory executable",
        "call memfd_create",
    }


@has_sandbox
def test_the_decoders_of_a_service_are_in_the_sandbox() -> None:
    with DecoderPool(PREPROCESSING, n_processes=1) as pool:
        pool.submit(picture()).result()
        (pid,) = pool.pids
        status = Path(f"/proc/{pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status


@has_sandbox
@pytest.mark.parametrize("architecture", sandbox.ARCHITECTURES)
def test_the_numbers_of_system_calls_are_those_of_the_kernel(architecture: str) -> None:
    header = HEADERS[architecture]
    if not header.exists():
        pytest.skip(f"the header {header} is not installed")
    text = header.read_text()
    numbers = {
        name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)", text)
    }
    column = sandbox.ARCHITECTURES[architecture].column
    tables = (
        sandbox.ALLOWED_CALLS,
        sandbox.MEMORY_CALLS,
        sandbox.LIMIT_CALLS,
        sandbox.THREAD_CALLS,
        sandbox.ABSENT_CALLS,
        sandbox.INSTALL_CALL,
    )
    for table in tables:
        for name, row in table.items():
            assert row[column] == numbers[name], name


def test_a_system_without_a_sandbox_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "mips")
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(sandbox.SandboxError, match="mips"):
        sandbox.enter_sandbox()
    monkeypatch.setattr("sys.platform", "plan9")
    with pytest.raises(sandbox.SandboxError, match="plan9"):
        sandbox.enter_sandbox()


@x86_64
def test_the_service_says_once_that_there_is_no_sandbox(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    program = tmp_path / "no_sandbox.py"
    program.write_text(
        "from evergrow.service.decoding import sandbox, worker\n"
        "def refuse():\n"
        "    raise sandbox.SandboxError('the kernel is too old')\n"
        "worker.enter_sandbox = refuse\n"
        "worker.main()\n"
    )
    monkeypatch.setattr(decoder, "_COMMAND", (sys.executable, str(program)))
    with DecoderPool(PREPROCESSING, n_processes=2) as pool:
        for _ in range(4):
            pool.submit(picture()).result()
    (record,) = [record for record in caplog.records if "sandbox" in record.message]
    assert record.levelname == "WARNING"
    assert record.facts == {"reason": "the kernel is too old"}
