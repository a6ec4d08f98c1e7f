"""Calibrations on disk: found again, made again, never trusted."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

import evergrow
from evergrow.distributed.planning import kept
from evergrow.foundation.errors import CacheWarning
from evergrow.storage import cache_folder as cache
from tests.distributed.planning.conftest import Counter

FILE = "plan.json"


@pytest.fixture(autouse=True)
def nobody_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is the first to meet trouble."""
    monkeypatch.setattr(cache, "_told", set())


def make(**options: Any) -> evergrow.Plan:
    return evergrow.plan(10_000, 64, 50, **options)


def test_a_second_plan_measures_nothing(measured: Counter) -> None:
    assert make() == make()
    assert (measured.calibrated, measured.n_machines) == (["ncm_forest"], 1)


def test_another_estimator_is_calibrated_besides(measured: Counter) -> None:
    make()
    make(estimator="means")
    make()
    assert measured.calibrated == ["ncm_forest", "means"]
    assert measured.n_machines == 1


def test_calibrating_again_can_be_asked_for(measured: Counter) -> None:
    make()
    make(calibrate=True)
    assert (len(measured.calibrated), measured.n_machines) == (2, 2)


def test_ray_and_images_are_measured_when_they_are_asked_about(measured: Counter) -> None:
    make()
    assert (measured.n_rays, measured.n_images) == (0, 0)
    for _ in range(2):
        make(nodes=2, images=True)
    assert (measured.n_rays, measured.n_images) == (1, 1)


def test_what_is_assumed_of_a_ray_that_does_not_answer_is_not_kept(
    measured: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as silent:
        silent.setattr("evergrow.distributed.planning.machine.measure_ray", lambda: None)
        assert any("Ray: " in limit for limit in make(nodes=2, images=True).limits)
    assert not any("Ray: " in limit for limit in make(nodes=2).limits)
    assert measured.n_rays == 1


@pytest.mark.parametrize("changed", ["evergrow", "processor", "numpy", "kernel", "cores"])
def test_a_calibration_of_another_version_or_machine_is_made_again(
    measured: Counter, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    make()
    other = {**kept.identity(), changed: "another"}
    monkeypatch.setattr(kept, "identity", lambda: other)
    make()
    assert len(measured.calibrated) == 2


DAMAGED = {
    "empty": b"",
    "text": b"calibrated",
    "not UTF-8": b"\xff\xfe\x00",
    "a list": b"[]",
    "a number": b"1",
    "deep": b"[" * 100_000,
    "huge": b'"' + b"x" * (2 << 20) + b'"',
    "no estimators": json.dumps({"identity": {}}).encode(),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_is_a_warning_and_measured_again(
    measured: Counter, tmp_path: Path, content: bytes
) -> None:
    expected = make()
    (tmp_path / "cache" / FILE).write_bytes(content)
    with pytest.warns(CacheWarning, match="cannot be used and is measured again"):
        assert make() == expected
    assert len(measured.calibrated) == 2
    assert make() == expected
    assert len(measured.calibrated) == 2


WRONG: dict[str, Any] = {
    "none": None,
    "a text": "fast",
    "negative": {"distances": -1.0},
    "not a number": {"distances": float("nan")},
    "infinite": {"distances": float("inf")},
    "true": {"distances": True},
    "missing": {},
}


@pytest.mark.parametrize("rates", WRONG.values(), ids=WRONG.keys())
def test_rates_that_are_none_are_measured_again(
    measured: Counter, tmp_path: Path, rates: Any
) -> None:
    expected = make()
    path = tmp_path / "cache" / FILE
    content = json.loads(path.read_text())
    entry = content["estimators"]["ncm_forest"]
    entry["rates"] = {**entry["rates"], **rates} if rates and "distances" in rates else rates
    path.write_text(json.dumps(content))
    assert make() == expected
    assert len(measured.calibrated) == 2


@pytest.mark.parametrize("key", ["laws", "error", "largest"])
def test_a_calibration_with_something_missing_is_made_again(
    measured: Counter, tmp_path: Path, key: str
) -> None:
    make()
    path = tmp_path / "cache" / FILE
    content = json.loads(path.read_text())
    del content["estimators"]["ncm_forest"][key]
    path.write_text(json.dumps(content))
    make()
    assert len(measured.calibrated) == 2


@pytest.mark.parametrize("machine", [None, 5, {}, {"copy_rate": -1}])
def test_a_machine_that_is_none_is_measured_again(
    measured: Counter, tmp_path: Path, machine: Any
) -> None:
    make()
    path = tmp_path / "cache" / FILE
    content = json.loads(path.read_text())
    content["machine"] = machine
    path.write_text(json.dumps(content))
    make()
    assert measured.n_machines == 2


def test_a_cache_that_cannot_be_written_is_a_warning(
    measured: Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file where the folder should be: the system's own "no", for whoever asks.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVERGROW_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(CacheWarning, match=r"plan\.json"):
        found = make()
    assert found.one_core.expected > 0


def test_a_read_only_cache_is_a_warning(measured: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        # Said in the system's place: to root it never says so.
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("evergrow.storage.files.os.replace", refuse)
    with pytest.warns(CacheWarning, match="measured each time"):
        make()
