"""Measuring this machine."""

from __future__ import annotations

import importlib.util
import subprocess
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from evergrow.distributed.planning import machine as module
from evergrow.distributed.planning.machine import (
    Machine,
    measure_images,
    measure_machine,
    measure_ray,
)
from evergrow.estimators.forest.scratch import scratch_folder


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick rather than exact."""
    monkeypatch.setattr(module, "_TRIAL_BYTES", 1 << 20)
    monkeypatch.setattr(module, "_REPEATS", 1)
    monkeypatch.setattr(module, "_FAR_ROWS", 2000)


def test_every_rate_is_positive() -> None:
    found = asdict(measure_machine())
    rates = [found[name] for name in ("copy_rate", "hash_rate", "write_rate", "read_rate")]
    assert min(rates) > 0
    assert 1 <= found["crowding"] <= found["far_crowding"]


def test_what_takes_long_is_not_measured_unasked() -> None:
    found = measure_machine()
    assert (found.put_rate, found.image_seconds) == (None, None)


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="needs onnxruntime")
def test_an_image_takes_some_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_N_IMAGES", 2)
    seconds = measure_images()
    assert seconds is None or 0 < seconds < 10


def test_without_the_packages_images_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    assert measure_images() is None


def test_without_ray_it_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    assert measure_ray() is None


ANSWERS = {
    "nothing": b"",
    "no JSON": b"Ray is starting\n",
    "something else": b"[1]\n",
    "zero": b'{"put_rate": 0, "task_seconds": 1}\n',
    "not a number": b'{"put_rate": NaN, "task_seconds": 1}\n',
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_ray_that_answers_nonsense_is_not_measured(
    monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    def run(arguments: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(arguments, 0, answer, b"")

    monkeypatch.setattr(module, "find_spec", lambda _: object())
    monkeypatch.setattr(module.subprocess, "run", run)
    assert measure_ray() is None


def test_a_ray_that_does_not_start_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arguments: list[str], **_: Any) -> Any:
        raise subprocess.TimeoutExpired(arguments, 60)

    monkeypatch.setattr(module, "find_spec", lambda _: object())
    monkeypatch.setattr(module.subprocess, "run", run)
    found = Machine(1.0, 1.0, 1.0, 1.0, 1.0, 1.0).with_ray()
    assert not found.ray_is_measured
    assert found.put_rate == 1.0


def test_the_disk_that_forests_write_to_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folders = []
    make_file = tempfile.TemporaryFile

    def watched(*, dir: str) -> Any:  # noqa: A002
        folders.append(dir)
        return make_file(dir=dir)

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(module.tempfile, "TemporaryFile", watched)
    module._disk_rates()
    assert folders == [scratch_folder()] == [str(tmp_path)]


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray")
def test_ray_is_measured_in_a_process_of_its_own() -> None:
    found = measure_ray()
    assert found is not None
    put_rate, task_seconds = found
    assert put_rate > 1e6
    assert 0 < task_seconds < 1
