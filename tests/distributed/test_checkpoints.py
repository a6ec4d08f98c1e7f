"""Work that was stopped goes on where it was."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest

import evergrow
from evergrow import NCMForestClassifier
from evergrow.distributed.checkpoints import CheckpointedEngine, CheckpointStore
from evergrow.estimators import Storage
from evergrow.estimators.forest.cluster import driver_grow
from evergrow.foundation.engine import Job, LocalEngine, current_engine
from evergrow.foundation.errors import CacheWarning
from evergrow.storage.models.format import read_model, write_model
from tests.distributed import work
from tests.distributed.conftest import enter, same_trees


@pytest.fixture
def grown(monkeypatch):
    """The groups of trees that are grown in this process."""
    groups = []
    grow = driver_grow.grow_over

    def noted(group, *shared):
        groups.append(group)
        return grow(group, *shared)

    monkeypatch.setattr(driver_grow, "grow_over", noted)
    return groups


def _fit(rows, **options):
    return NCMForestClassifier(**{"n_estimators": 16, "random_state": 5, **options}).fit(*rows)


def test_finished_trees_are_not_grown_again(rows, tmp_path, grown):
    with evergrow.cluster(None, resume=tmp_path):
        first = _fit(rows)
        n_grown = len(grown)
        second = _fit(rows)
    assert n_grown == 8
    assert len(grown) == n_grown
    assert same_trees(first, second)
    assert same_trees(first, _fit(rows))


@pytest.mark.parametrize(
    "options", [{"random_state": 6}, {"n_estimators": 17}, {"min_samples_leaf": 7}]
)
def test_other_parameters_are_other_work(rows, tmp_path, grown, options):
    with evergrow.cluster(None, resume=tmp_path):
        _fit(rows)
        n_grown = len(grown)
        _fit(rows, **options)
    assert len(grown) > n_grown


def test_other_data_is_other_work(rows, tmp_path, grown):
    X, y = rows
    changed = X.copy()
    changed[17, 3] += 1
    with evergrow.cluster(None, resume=tmp_path):
        _fit(rows)
        n_grown = len(grown)
        _fit((changed, y))
        _fit((X, np.roll(y, 1)))
    assert len(grown) == 3 * n_grown


def test_a_forest_without_a_seed_goes_on_with_the_seed_it_had(rows, tmp_path, grown):
    models = []
    for _ in range(2):
        with evergrow.cluster(None, resume=tmp_path):
            models.append([_fit(rows, random_state=None) for _ in range(2)])
    (first, second), (again, again_second) = models
    assert same_trees(first, again)
    assert same_trees(second, again_second)
    assert not same_trees(first, second)
    assert len(grown) == 16


@pytest.mark.slow
def test_samples_on_disk_are_resumed_too(rows, tmp_path, grown):
    options = {"storage": Storage(1)}
    for _ in range(2):
        with evergrow.cluster(None, resume=tmp_path / "checkpoints"):
            resumed = _fit(rows, n_jobs=1, **options)
    assert len(grown) == 8
    assert same_trees(resumed, _fit(rows, n_jobs=1, **options))


@pytest.mark.parametrize("damage", ["truncated", "changed", "foreign", "garbage"])
def test_a_damaged_result_is_computed_again(tmp_path, damage):
    store = CheckpointStore(tmp_path)
    engine = CheckpointedEngine(LocalEngine(), store)
    job = Job(work.shifted, range(3), [10], "adding", name="sums")
    expected = dict(engine.run(job))
    path = store.path_of("sums", 1)
    content = path.read_bytes()
    path.write_bytes(
        {
            "truncated": content[:-3],
            "changed": content[:-8] + b"\x07" + content[-7:],
            "foreign": store.path_of("sums", 2).read_bytes(),
            "garbage": b"nonsense",
        }[damage]
    )
    with pytest.warns(CacheWarning, match="computed again|is ignored"):
        assert dict(engine.run(job)) == expected


@pytest.mark.parametrize("forgery", ["other numbers", "fewer arrays", "fewer trees"])
def test_a_whole_file_of_unusable_trees_is_computed_again(rows, tmp_path, grown, forgery):
    with evergrow.cluster(None, resume=tmp_path):
        expected = _fit(rows)
    path = sorted(tmp_path.glob("*-000003.evergrow"))[0]
    header, arrays = read_model(path)
    forged = {
        "other numbers": {
            name: np.full_like(array, 77) if name[0].isdigit() else array
            for name, array in arrays.items()
        },
        "fewer arrays": {name: array for name, array in arrays.items() if name[0].isdigit()},
        "fewer trees": {"n_comparisons": arrays["n_comparisons"][:0]},
    }[forgery]
    write_model(path, {key: header[key] for key in ("kind", "work", "part")}, forged)
    with (
        evergrow.cluster(None, resume=tmp_path),
        pytest.warns(CacheWarning, match=f"computed again: .*{path.name}"),
    ):
        found = _fit(rows)
    assert same_trees(found, expected)
    assert len(grown) == 8 + 1


def test_a_stored_seed_that_is_not_one_is_drawn_again(rows, tmp_path):
    with evergrow.cluster(None, resume=tmp_path):
        made = current_engine().restore_or_make("seed", lambda: {"seed": np.array([3])})
    path = CheckpointStore(tmp_path).path_of("seed", 0)
    write_model(path, {"kind": "result", "work": "seed", "part": 0}, {"sum": np.zeros(2)})
    with evergrow.cluster(None, resume=tmp_path), pytest.warns(CacheWarning, match=path.name):
        assert current_engine().restore_or_make("seed", lambda: made) == made


def test_a_warning_points_at_the_line_that_asked(rows, tmp_path):
    with evergrow.cluster(None, resume=tmp_path):
        _fit(rows)
        for path in tmp_path.iterdir():
            path.write_bytes(b"nonsense")
        with pytest.warns(CacheWarning) as warned:
            _fit(rows)
    assert {warning.filename for warning in warned} == {__file__}


@pytest.mark.parametrize("resume", ["", 3, b"folder", "a\0b"])
def test_a_value_that_is_not_a_path_to_resume_from_is_refused(resume):
    with pytest.raises(ValueError, match=r"^resume must be None or a path, got"):
        enter(None, resume=resume)


def test_coarse_and_fine_classes_without_a_seed_are_resumed_too(rows, tmp_path, grown):
    labels = np.column_stack([rows[1] // 3, rows[1]])
    for _ in range(2):
        with evergrow.cluster(None, resume=tmp_path):
            evergrow.SubcategoryForestClassifier(8).fit(rows[0], labels)
    assert len(grown) == 8


def test_a_reduction_that_is_resumed_gives_the_same_sum(tmp_path):
    engine = CheckpointedEngine(LocalEngine(), CheckpointStore(tmp_path))
    job = Job(work.random_numbers, range(7), description="adding", name="sums")
    expected = LocalEngine().reduce(job, work.add)
    for _ in range(2):
        assert np.array_equal(engine.reduce(job, work.add)["sum"], expected["sum"])


def test_results_of_a_job_without_a_name_are_not_stored(tmp_path):
    engine = CheckpointedEngine(LocalEngine(), CheckpointStore(tmp_path))
    list(engine.run(Job(work.shifted, range(3), [10], "adding")))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_does_not_stop_the_work(tmp_path, monkeypatch):
    engine = CheckpointedEngine(LocalEngine(), CheckpointStore(tmp_path))

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evergrow.distributed.checkpoints.write_model", full)
    job = Job(work.random_numbers, range(3), description="adding", name="sums")
    with pytest.warns(CacheWarning, match="No space left"):
        assert engine.reduce(job, work.add)["sum"].shape == (1000,)


def test_a_file_is_refused_as_a_folder_to_resume_from(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        enter(None, resume=tmp_path / "file")


_DRIVER = """
import evergrow, numpy as np, sys
X, y = np.load(sys.argv[1]), np.load(sys.argv[2])
with evergrow.cluster(sys.argv[4], n_workers=1, resume=sys.argv[3]):
    evergrow.NCMForestClassifier(16, random_state=5).fit(X, y)
"""


def test_a_killed_driver_is_resumed_from_its_finished_trees(two_nodes, rows, tmp_path, grown):
    X, y = np.tile(rows[0], (6, 1)), np.tile(rows[1], 6)
    paths = [tmp_path / "X.npy", tmp_path / "y.npy", tmp_path / "checkpoints"]
    np.save(paths[0], X)
    np.save(paths[1], y)
    command = [sys.executable, "-c", _DRIVER, *map(str, paths), two_nodes.address]
    driver = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while driver.poll() is None and len(list(paths[2].glob("*-*.evergrow"))) < 2:
        # Not all of a processor that it needs itself.
        with suppress(subprocess.TimeoutExpired):
            driver.wait(0.01)
    driver.kill()
    driver.wait()
    n_finished = len(list(paths[2].glob("*-*.evergrow")))
    with evergrow.cluster(None, resume=paths[2]):
        resumed = _fit((X, y))
    assert 2 <= n_finished < 8
    assert len(grown) == 8 - n_finished
    assert same_trees(resumed, _fit((X, y)))


def test_what_was_finished_here_serves_a_cluster(two_nodes, rows, tmp_path):
    with evergrow.cluster(None, resume=tmp_path):
        here = _fit(rows)
    with evergrow.cluster("auto", resume=tmp_path):
        there = _fit(rows)
        assert current_engine()._engine.n_bytes == 0
    assert same_trees(here, there)
