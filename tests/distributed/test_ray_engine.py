"""Work on the workers of a real Ray cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import evergrow
from evergrow.foundation.engine import Job, LocalEngine, current_engine
from evergrow.foundation.errors import ClusterError, ShardError
from tests.distributed import work
from tests.distributed.conftest import enter

FOUR = Job(work.shifted, range(4), [1], "adding")


def _values(results):
    return {place: int(found["value"][0]) for place, found in results}


def test_every_part_is_done_with_what_is_shared(engine):
    shared = [engine.share(10)]
    found = _values(engine.run(Job(work.shifted, range(9), shared, "adding")))
    assert found == {part: part + 10 for part in range(9)}


@pytest.mark.parametrize("n_parts", [1, 2, 3, 7, 8])
def test_sums_are_rounded_as_in_one_process(engine, n_parts):
    job = Job(work.random_numbers, range(n_parts), description="adding")
    there, here = engine.reduce(job, work.add), LocalEngine().reduce(job, work.add)
    assert np.array_equal(there["sum"], here["sum"])


def test_of_a_reduction_only_the_last_result_comes_back(engine):
    before = engine.n_bytes
    engine.reduce(Job(work.random_numbers, range(8), description="adding"), work.add)
    assert engine.n_bytes - before == 8000


def test_the_next_part_starts_before_a_result_is_used(two_nodes, tmp_path):
    with evergrow.cluster("auto", n_workers=1):
        job = Job(work.leave_mark, range(3), [str(tmp_path)], "marking")
        results = current_engine().run(job)
        next(results)
        deadline = time.monotonic() + 30
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(list(tmp_path.iterdir())) == 2
        assert len(list(results)) == 2


def test_workers_read_shared_arrays_where_they_lie(engine):
    matrix = np.ones((4000, 1000))
    results = list(engine.run(Job(work.aligned, range(4), [engine.share(matrix)], "looking")))
    assert all(found["at"][0] == 0 and not found["writeable"][0] for _, found in results)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_worker_has_no_copy_of_a_shared_matrix(engine):
    small, large = np.ones((10, 1000)), np.ones((40_000, 1000))
    used = []
    for matrix in (small, large):
        results = engine.run(Job(work.private_bytes, range(6), [engine.share(matrix)], "reading"))
        used.append(max(int(found["bytes"][0]) for _, found in results))
    assert used[1] - used[0] < 0.3 * large.nbytes


def test_an_error_of_the_work_is_the_same_error_here(engine):
    with pytest.raises(ShardError, match=r"^shard 000002.npy has another SHA-256") as caught:
        list(engine.run(Job(work.refuse, range(4), description="reading")))
    assert type(caught.value) is ShardError


def test_an_error_of_joining_is_the_same_error_here(engine):
    with pytest.raises(ValueError, match=r"^these cannot be added"):
        engine.reduce(Job(work.random_numbers, range(3), description="adding"), work.refuse_to_add)


def test_parts_of_killed_workers_are_done_again(engine, tmp_path):
    found = _values(engine.run(Job(work.die_once, range(3), [str(tmp_path)], "dying")))
    assert found == {0: 0, 1: 1, 2: 2}


def test_a_part_that_always_kills_its_worker_is_given_up(two_nodes):
    with (
        evergrow.cluster("auto", retries=1),
        pytest.raises(ClusterError, match=r"dying failed: .* lost 2 times"),
    ):
        list(current_engine().run(Job(work.die, range(1), description="dying")))


def test_a_part_that_hangs_is_begun_again(two_nodes, tmp_path):
    with evergrow.cluster("auto", task_timeout=1.5):
        results = current_engine().run(Job(work.hang_once, range(1), [str(tmp_path)], "hanging"))
        assert _values(results) == {0: 0}


def test_a_part_that_always_hangs_is_given_up(two_nodes):
    with (
        evergrow.cluster("auto", task_timeout=0.5, retries=1),
        pytest.raises(ClusterError, match=r"longer than task_timeout=0\.5 seconds in each of 2"),
    ):
        list(current_engine().run(Job(work.hang, range(1), description="hanging")))


def test_an_interrupted_run_leaves_the_workers_free(engine):
    interrupt = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        list(engine.run(Job(work.hang, range(4), description="hanging")))
    assert len(list(engine.run(FOUR))) == 4


def test_closing_the_results_stops_the_work(engine):
    results = engine.run(Job(work.shifted, range(50), [1], "adding"))
    next(results)
    results.close()
    assert len(list(engine.run(FOUR))) == 4


def test_after_the_block_there_is_no_engine(two_nodes):
    with evergrow.cluster("auto"):
        engine = current_engine()
    assert current_engine() is None
    with pytest.raises(ClusterError, match=r"block .* has ended"):
        engine.share(1)


def test_blocks_may_be_nested(two_nodes):
    with evergrow.cluster("auto"):
        outer = current_engine()
        with evergrow.cluster(None):
            assert current_engine() is None
        with evergrow.cluster("auto", n_workers=1):
            assert current_engine().capacity.n_workers == 1
        assert current_engine() is outer
        assert outer.capacity.n_workers == 2


def test_a_cluster_that_was_there_before_stays(two_nodes):
    import ray

    with evergrow.cluster("auto"):
        pass
    assert ray.is_initialized()


def test_a_second_cluster_is_refused_while_one_is_in_use(two_nodes):
    with pytest.raises(ClusterError, match=r"connected to Ray at .* only one cluster"):
        enter("local")


def test_the_bar_shows_parts_that_are_done(engine, capfd):
    list(engine.run(Job(work.shifted, range(4), [1], "adding up", verbose=1)))
    assert "Adding up" in capfd.readouterr().err


_ALL_FAIL = """
import evergrow
from evergrow.foundation.engine import Job, current_engine
from tests.distributed import work

with evergrow.cluster({address!r}):
    for how in ("run", "reduce"):
        engine = current_engine()
        shared = [engine.share(0)]
        try:
            if how == "run":
                list(engine.run(Job(work.refuse_to_add, range(8), shared, "adding")))
            else:
                engine.reduce(Job(work.refuse_to_add, range(8), shared, "adding"), work.add)
        except ValueError as error:
            print("caught", error)
"""


def test_of_many_failures_one_is_reported_and_ray_adds_nothing(two_nodes, run_script):
    root = str(Path(__file__).parents[2])
    text = _ALL_FAIL.format(address=two_nodes.address)
    done = run_script(text, PYTHONPATH=root, RAY_AUTH_MODE="disabled")
    assert done.stdout.count("caught these cannot be added") == 2, done.stderr
    assert "Unhandled error" not in done.stderr
