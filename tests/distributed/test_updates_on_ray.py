"""Trees that stay with actors are updated as here, whatever befalls the actors."""

from __future__ import annotations

import os
import signal

import pytest

import evergrow
from evergrow import NCMForestClassifier
from evergrow.foundation.engine import current_engine
from evergrow.foundation.errors import ClusterError
from tests.distributed.conftest import enter, same_trees


@pytest.fixture
def batches(rows):
    X, y = rows
    return [(X[:2000], y[:2000]), (X[2000:2400], y[2000:2400] + 6), (X[2400:], y[2400:])]


def trained(batches, **options):
    found = NCMForestClassifier(7, random_state=3, **{"update": "rtst", **options})
    for batch in batches:
        found.partial_fit(*batch)
    return found


def actors():
    """Processes of the actors of this block, by their place."""
    import ray

    resident = current_engine()._actors._actors
    return {
        place: ray.get(actor.handle.__ray_call__.remote(lambda _: os.getpid()))
        for place, actor in resident.items()
    }


def update_and(engine, do, at):
    """Have something done after so many groups of the next update."""
    update = engine.update

    def update_then(*args):
        engine.update = update
        for n_done, found in enumerate(update(*args), 1):
            if n_done == at:
                do()
            yield found

    engine.update = update_then


OPTIONS = [{"update": update} for update in ("uls", "igt", "rtst", "rust")]
OPTIONS += [{"refresh": 0.4}, {"keep_per_class": 60}, {"sample_dtype": "float16"}]


def test_updates_by_actors_are_those_made_here(two_nodes, batches):
    with evergrow.cluster("auto", updates="workers"):
        there = [trained(batches[:2], **options) for options in OPTIONS]
        before = actors()
        assert len(before) == 2
        for forest in there:
            forest.partial_fit(*batches[2])
        assert actors() == before
    for forest, options in zip(there, OPTIONS, strict=True):
        assert same_trees(forest, trained(batches, **options)), options


def test_other_work_is_done_while_actors_wait(two_nodes, batches):
    with evergrow.cluster("auto", updates="workers"):
        first, second = trained(batches[:2]), trained(batches[:2], update="rust")
        # It would wait forever if actors held the processors.
        grown = NCMForestClassifier(7, random_state=3).fit(*batches[0])
        first.forget(samples=range(300))
        first.partial_fit(*batches[2])
        second.partial_fit(*batches[2])
    here = trained(batches[:2])
    here.forget(samples=range(300))
    assert same_trees(first, here.partial_fit(*batches[2]))
    assert same_trees(second, trained(batches, update="rust"))
    assert same_trees(grown, NCMForestClassifier(7, random_state=3).fit(*batches[0]))


def test_an_actor_killed_between_updates_is_made_again(two_nodes, batches):
    with evergrow.cluster("auto", updates="workers"):
        there = trained(batches[:2])
        before = actors()
        os.kill(before[1], signal.SIGKILL)
        there.partial_fit(*batches[2])
        after = actors()
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert same_trees(there, trained(batches))


def test_an_actor_killed_during_an_update_is_made_again(two_nodes, batches):
    with evergrow.cluster("auto", updates="workers"):
        there = trained(batches[:2])
        before = actors()
        engine = current_engine()
        start = engine._actors._start

        def start_and_kill(job, versions, index):
            started = start(job, versions, index)
            if index == 1 and engine._actors._start is not start:
                engine._actors._start = start
                os.kill(before[1], signal.SIGKILL)
            return started

        engine._actors._start = start_and_kill
        there.partial_fit(*batches[2])
        assert actors()[1] != before[1]
    assert same_trees(there, trained(batches))


def test_actors_that_die_every_time_are_given_up(two_nodes, batches):
    with evergrow.cluster("auto", updates="workers", retries=0):
        there = trained(batches[:2])
        known = there._fitted
        os.kill(actors()[0], signal.SIGKILL)
        with pytest.raises(ClusterError, match="updating groups of trees failed"):
            there.partial_fit(*batches[2])
        assert there._fitted is known
        there.partial_fit(*batches[2])
    assert same_trees(there, trained(batches))


def test_an_interrupted_update_changes_nothing(two_nodes, batches):
    with evergrow.cluster("auto", updates="workers"):
        there = trained(batches[:2])
        known = there._fitted
        update_and(current_engine(), lambda: signal.raise_signal(signal.SIGINT), at=1)
        with pytest.raises(KeyboardInterrupt):
            there.partial_fit(*batches[2])
        assert there._fitted is known
        there.partial_fit(*batches[2])
    assert same_trees(there, trained(batches))


def test_an_update_that_takes_too_long_is_begun_again(two_nodes, batches):
    with evergrow.cluster("auto", updates="workers", task_timeout=2.0):
        there = trained(batches[:2])
        before = actors()
        os.kill(before[0], signal.SIGSTOP)
        there.partial_fit(*batches[2])
        assert actors()[0] != before[0]
    assert same_trees(there, trained(batches))


def test_actors_end_with_the_block(two_nodes, batches):
    psutil = pytest.importorskip("psutil")
    with evergrow.cluster("auto", updates="workers"):
        there = trained(batches[:2])
        processes = [psutil.Process(pid) for pid in actors().values()]
    assert not psutil.wait_procs(processes, timeout=20)[1]
    with evergrow.cluster("auto", updates="workers"):
        there.partial_fit(*batches[2])
    assert same_trees(there, trained(batches))


def test_a_place_for_updates_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="updates must be one of"):
        enter(None, updates="there")
