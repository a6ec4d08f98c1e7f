"""Forests grown on workers are those grown here, whatever befalls the workers."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import evergrow
from evergrow import NCMForestClassifier, SubcategoryForestClassifier
from evergrow.estimators import Storage
from evergrow.estimators.forest.cluster import driver_grow
from evergrow.estimators.forest.storage import temporary_folder
from evergrow.foundation.engine import current_engine
from evergrow.foundation.errors import ShardError
from tests.conftest import FORESTS
from tests.distributed.conftest import same_trees
from tests.distributed.namespaces import why_no_namespaces


def check_same(train, **options):
    """The forest that workers grow is the one grown here."""
    here = train()
    with evergrow.cluster("auto", **options):
        assert same_trees(train(), here)


@pytest.mark.parametrize("kind", FORESTS)
def test_every_kind_of_forest_is_the_one_grown_here(two_nodes, rows, kind):
    check_same(lambda: kind(9, random_state=3).fit(*rows))


@pytest.mark.parametrize(
    "options", [{"n_workers": 1}, {"n_workers": 2}, {"threads_per_worker": 1, "n_workers": 5}]
)
def test_the_forest_does_not_depend_on_the_workers(two_nodes, rows, options):
    forest = NCMForestClassifier(20, storage=Storage(dtype="float16"), random_state=3)
    check_same(lambda: clone(forest).fit(*rows), **options)


@pytest.mark.parametrize("limit", [None, 1])
def test_weights_reach_the_workers(two_nodes, rows, limit, tmp_path):
    X, y = rows
    if limit is not None:
        X = evergrow.write_shards(tmp_path / "shards", [(X, y)], rows_per_shard=500)
    weights = np.random.default_rng(0).exponential(1.0, len(y))
    forest = NCMForestClassifier(9, class_weight="balanced", storage=Storage(limit), random_state=3)
    check_same(lambda: clone(forest).fit(X, y, sample_weight=weights))


def test_a_forest_is_whole_after_the_block(two_nodes, rows, tmp_path):
    X, y = rows
    here = NCMForestClassifier(8, random_state=3).fit(X, y)
    with evergrow.cluster("auto"):
        there = NCMForestClassifier(8, random_state=3).fit(X, y)
    there.save(tmp_path / "forest")
    more = X[:200] + 5, y[:200] + 100
    loaded = evergrow.load(tmp_path / "forest").partial_fit(*more)
    assert same_trees(there.partial_fit(*more), here.partial_fit(*more))
    assert same_trees(loaded, here)


@pytest.mark.parametrize("update", ["uls", "igt", "rtst", "rust"])
def test_updates_in_a_block_are_those_made_here(two_nodes, rows, update):
    X, y = rows
    models = [NCMForestClassifier(8, update=update, random_state=3) for _ in range(2)]
    parts = [(X[:2000], y[:2000]), (X[2000:2600], y[2000:2600] + 6), (X[2600:], y[2600:])]
    with evergrow.cluster("auto"):
        for part in parts:
            models[0].partial_fit(*part)
    for part in parts:
        models[1].partial_fit(*part)
    assert same_trees(*models)


def test_coarse_and_fine_classes_are_learnt_as_here(two_nodes, rows):
    X, y = rows
    labels = np.column_stack([y // 3, y])
    here = SubcategoryForestClassifier(6, random_state=1).fit(X, labels)
    with evergrow.cluster("auto"):
        there = SubcategoryForestClassifier(6, random_state=1).fit(X, labels)
    assert np.array_equal(here.predict_proba(X[:50]), there.predict_proba(X[:50]))


def test_shards_are_learnt_as_the_array(two_nodes, rows, tmp_path):
    X, y = rows
    shards = evergrow.write_shards(tmp_path / "shards", [(X, y)], rows_per_shard=500)
    here = NCMForestClassifier(6, random_state=1).fit(X, y)
    with evergrow.cluster("auto"):
        there = NCMForestClassifier(6, random_state=1).fit(shards, shards.labels)
    assert same_trees(there, here)


def test_shards_beyond_the_memory_limit_are_one_file_on_a_node(
    two_nodes, rows, tmp_path, monkeypatch
):
    X, y = rows
    shards = evergrow.write_shards(tmp_path / "shards", [(X, y)])
    removed = []
    remove = driver_grow.remove_node_file
    monkeypatch.setattr(
        driver_grow, "remove_node_file", lambda name: removed.append(name) or remove(name)
    )
    options = {"random_state": 1, "n_jobs": 1}
    here = NCMForestClassifier(16, **options).fit(X, y)
    with evergrow.cluster("auto"):
        there = NCMForestClassifier(16, storage=Storage(1), **options)
        there.fit(shards, shards.labels)
    assert same_trees(there, here)
    assert removed
    assert list(Path(temporary_folder()).glob(f"evergrow-rows-{removed[0]}*")) == []


def test_a_forest_that_stays_here_says_why(two_nodes, rows):
    why = "grown here and not on .*evergrow.write_shards"
    with (
        evergrow.cluster("auto"),
        pytest.warns(evergrow.ClusterWarning, match=why) as warned,
    ):
        NCMForestClassifier(1, storage=Storage(1), n_jobs=1).fit(*rows)
    assert warned[0].filename == __file__


def test_a_corrupt_shard_is_named_and_the_forest_stays(two_nodes, rows, tmp_path):
    shards = evergrow.write_shards(tmp_path / "shards", [rows], rows_per_shard=500)
    forest = NCMForestClassifier(6, random_state=1).fit(*rows)
    before = forest._fitted
    damaged = tmp_path / "shards" / "000003.npy"
    content = bytearray(damaged.read_bytes())
    content[-9] ^= 1
    damaged.write_bytes(content)
    with evergrow.cluster("auto"), pytest.raises(ShardError, match="000003"):
        forest.fit(shards, shards.labels)
    assert forest._fitted is before


def test_a_failed_fit_leaves_the_forest_as_it_was(two_nodes, rows, monkeypatch):
    forest = NCMForestClassifier(6, random_state=1).fit(*rows)
    before = forest._fitted
    interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    X, y = np.tile(rows[0], (20, 5)), np.tile(rows[1], 20)
    forest.set_params(n_estimators=200)
    with evergrow.cluster("auto"):
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            forest.fit(X, y)
    assert forest._fitted is before


def test_a_forest_is_the_same_after_a_worker_is_killed(two_nodes, rows):
    import psutil

    here = NCMForestClassifier(60, random_state=3).fit(*rows)

    def kill_one():
        for process in psutil.process_iter(["cmdline", "ppid"]):
            line = " ".join(process.info["cmdline"] or ())
            # Only workers of this cluster: others may run on this machine.
            if line.startswith("ray::perform") and _belongs_to(process, two_nodes):
                process.kill()
                killed.append(process.pid)
                return

    killed: list[int] = []
    with evergrow.cluster("auto"):
        NCMForestClassifier(2, random_state=3).fit(*rows)
        engine = current_engine()
        run = engine.run

        def run_and_kill(*args, **options):
            for n_done, found in enumerate(run(*args, **options)):
                # Between two parts there may be none at work.
                if n_done >= 2 and not killed:
                    kill_one()
                yield found

        engine.run = run_and_kill
        there = NCMForestClassifier(60, random_state=3).fit(*rows)
    assert killed
    assert same_trees(there, here)


def _belongs_to(process, cluster):
    pids = cluster.pids()
    return process.pid in pids or any(parent.pid in pids for parent in process.parents())


@pytest.mark.parametrize("loss", ["kill", "cut"])
def test_a_forest_is_the_same_after_a_node_is_lost(two_nodes, rows, loss):
    reason = why_no_namespaces()
    if loss == "cut" and reason is not None:
        pytest.skip(f"a link is cut between network namespaces: {reason}")
    here = NCMForestClassifier(40, random_state=3).fit(*rows)
    third = two_nodes.add_node(2)
    with evergrow.cluster("auto"):
        engine = current_engine()
        run = engine.run

        def run_and_lose(*args, **options):
            for n_done, found in enumerate(run(*args, **options)):
                if n_done == 2:
                    getattr(third, loss)()
                yield found

        engine.run = run_and_lose
        there = NCMForestClassifier(40, random_state=3).fit(*rows)
    third.kill()
    assert same_trees(there, here)
