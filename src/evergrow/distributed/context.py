"""``evergrow.cluster``: the block in which long work runs on a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from evergrow.distributed.checkpoints import CheckpointedEngine, CheckpointStore
from evergrow.distributed.connection import check_address, connected
from evergrow.distributed.ray_engine import RayEngine
from evergrow.foundation.engine import LocalEngine, use_engine
from evergrow.foundation.params import (
    Choice,
    FilePath,
    Flag,
    Integer,
    Nothing,
    Number,
    Rule,
    check_parameters,
)

_RULES: dict[str, list[Rule]] = {
    "n_workers": [Nothing(), Integer(1, 2**20)],
    "threads_per_worker": [Integer(1, 2**15)],
    "connect_timeout": [Number(0.0, 86400.0, open_low=True)],
    "retries": [Integer(0, 2**20)],
    "task_timeout": [Nothing(), Number(0.0, open_low=True)],
    "updates": [Choice(("auto", "here", "workers"))],
    "resume": [Nothing(), FilePath()],
    "verbose": [Integer(0, 2**31 - 1), Flag()],
}


@contextmanager
def cluster(
    address: str | None = "auto",
    *,
    n_workers: int | None = None,
    threads_per_worker: int = 1,
    connect_timeout: float = 30.0,
    retries: int = 3,
    task_timeout: float | None = None,
    resume: str | os.PathLike[str] | None = None,
    updates: str = "auto",
    verbose: int = 0,
) -> Iterator[None]:
    """Run the long work of estimators on a Ray cluster for the duration of the block.

    Estimators are used as outside of the block and learn the same: the same seed gives the same
    forest on any number of workers, or on none. The fitted model is in this process; the cluster
    is not needed after the block.

    Parameters
    ----------
    address : str or None, default="auto"
        ``"auto"``: the cluster that the variable ``RAY_ADDRESS`` names, else one that runs on this
        machine, else one is started here. ``"local"``: one is started on this machine.
        ``"host:port"``: the cluster whose head node is there; this machine must be one of its
        nodes. ``"ray://host:port"``: a cluster that this machine is not part of. None: no cluster,
        all work runs in this process, so that one script can do both.
    n_workers : int or None, default=None
        Maximum number of parts at the same time; None for as many as there are processors. Fewer
        workers leave processors for other programs and need less memory.
    threads_per_worker : int, default=1
        Processors that one part uses. More threads mean fewer, larger processes: less memory, but
        a less even load.
    connect_timeout : float, default=30
        Seconds in which a cluster must answer. Importing Ray, which takes some seconds the first
        time, does not count.
    retries : int, default=3
        How often a part is retried when its worker or node is lost.
    task_timeout : float or None, default=None
        Seconds after submission to Ray after which a part is cancelled and started again, for
        workers that hang. None to wait for as long as the worker lives.
    resume : path or None, default=None
        A folder for checkpoints. If the program is stopped, run it again with the same folder to
        resume: a checkpoint is used only for the data, parameters and version that it was made
        with. Remove the folder when the work is done.
    updates : {"auto", "here", "workers"}, default="auto"
        Where ``partial_fit`` updates forests. ``"here"``: in this process. ``"workers"``: the trees
        stay with workers, which receive the new samples and return what changed; the first update
        also sends them the forest. ``"auto"``: on workers from the second update of a forest on,
        if the strategy grows much again (RTST, RUST) and the workers have at least four times the
        threads of its ``n_jobs``; else here, see the notes.
    verbose : int, default=0
        Show progress bars for all work, also of estimators with ``verbose=0``.

    Raises
    ------
    ImportError
        If Ray is not installed.
    ClusterError
        If no cluster answers, or its nodes run other versions of Python, Evergrow or NumPy, or
        have processors of other kinds.

    Notes
    -----
    Ray runs code for every client that can reach it. Newer versions ask for a token: a cluster
    started here makes one; for another cluster set ``RAY_AUTH_MODE=token`` and ``RAY_AUTH_TOKEN``.

    A forest is complete in this process after every update, wherever the update ran: a worker that
    replaces a lost one receives the trees again, and an update that fails or is interrupted
    changes nothing. Forests with ``memory`` or ``memory_limit`` are updated here, because their
    samples are on a disk of this machine. Whether workers pay depends on how much must come back:
    with 16 trees of 130 MB, 1000 new samples change 20 MB with ULS, 22 with IGT, 37 with RUST and
    everything with RTST, while the update itself took 0.04, 0.04, 0.12 and 0.36 s on two threads.

    Examples
    --------
    >>> import evergrow
    >>> X, y = [[0, 0], [0, 1], [9, 8], [9, 9]], ["cat", "cat", "dog", "dog"]
    >>> with evergrow.cluster(None):
    ...     forest = evergrow.NCMForestClassifier(5, min_samples_leaf=1, random_state=0).fit(X, y)
    >>> forest.predict([[8, 8]])
    array(['dog'], dtype='<U3')
    """
    options = {
        "n_workers": n_workers,
        "threads_per_worker": threads_per_worker,
        "connect_timeout": connect_timeout,
        "retries": retries,
        "task_timeout": task_timeout,
        "updates": updates,
        "resume": resume,
        "verbose": verbose,
    }
    check_parameters(options, _RULES)
    check_address(address)
    store = None if resume is None else CheckpointStore(resume)
    if address is None:
        # Without checkpoints there is no reason to cut work into parts.
        with use_engine(None if store is None else CheckpointedEngine(LocalEngine(), store)):
            yield
        return
    with connected(
        address,
        n_processors=None if n_workers is None else n_workers * threads_per_worker,
        threads_per_worker=threads_per_worker,
        connect_timeout=float(connect_timeout),
    ):
        engine = RayEngine(
            n_workers=n_workers,
            threads_per_worker=threads_per_worker,
            retries=retries,
            task_timeout=task_timeout,
            updates=updates,
            verbose=int(verbose),
        )
        chosen = engine if store is None else CheckpointedEngine(engine, store)
        with closing(engine), use_engine(chosen):
            yield
