"""The block in which long work runs elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from evergrow.distributed.connecting import check_address, connected
from evergrow.distributed.keeping import KeptResults, Resuming
from evergrow.distributed.ray_engine import RayEngine
from evergrow.foundation.engine import InProcess, using
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

__all__ = ["cluster"]

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
    """Do the long work of estimators on a Ray cluster while the block runs.

    Estimators are used inside the block as they are outside of it and learn the same: the same
    seed gives the same forest on any number of workers, or on none. What they have learnt is in
    this process; nothing of the cluster is needed after the block.

    Parameters
    ----------
    address : str or None, default="auto"
        ``"auto"``: the cluster that the variable ``RAY_ADDRESS`` names, else one that runs on this
        machine, else one is started here. ``"local"``: one is started on this machine.
        ``"host:port"``: the cluster whose head node is there; this machine must be one of its
        nodes. ``"ray://host:port"``: a cluster that this machine is not part of. None: no cluster,
        all work is done in this process, so that one script serves both.
    n_workers : int or None, default=None
        Most parts of the work at the same time; None for as many as there are processors. Fewer
        leave room for others and take less memory.
    threads_per_worker : int, default=1
        Processors that one part uses. More make fewer, larger processes: less memory, and less
        even loads.
    connect_timeout : float, default=30
        Seconds in which a cluster must answer, from when it is asked: Ray is imported before,
        which itself takes some seconds the first time.
    retries : int, default=3
        How often a part is done again whose worker or node is lost.
    task_timeout : float or None, default=None
        Seconds, counted from when it is handed to Ray, after which a part is stopped and begun
        again, for workers that hang. None to wait for as long as its worker lives.
    resume : path or None, default=None
        A folder for finished parts. If the program is stopped, running it again with the same
        folder goes on where it was: what is kept there belongs to the data, parameters and version
        it was made with, and is used for nothing else. Remove the folder when the work is done.
    updates : {"auto", "here", "workers"}, default="auto"
        Who updates forests in ``partial_fit``. ``"here"``: this process. ``"workers"``: the trees
        stay with workers, which get the new samples and send back what changed; the first update
        also sends them the forest. ``"auto"``: workers, from the second of several updates of a
        forest on, if it grows much again (RTST, RUST) and they have at least four
        times the threads of its ``n_jobs``; else here, see the notes.
    verbose : int, default=0
        Show progress bars of all work, also of estimators that are silent.

    Raises
    ------
    ImportError
        If Ray is not installed.
    ClusterError
        If no cluster answers, or its nodes run other versions of Python, Evergrow or NumPy, or
        have processors of other kinds.

    Notes
    -----
    Ray runs code for whoever reaches it. Newer versions ask for a token: a cluster that is started
    here makes one; for another cluster set ``RAY_AUTH_MODE=token`` and ``RAY_AUTH_TOKEN``.

    A forest is complete in this process after every update, whoever made it: a worker that is lost
    is given its trees again, and an update that fails or is interrupted changes nothing. Forests
    with ``memory`` or ``memory_limit`` are updated here, for their samples are on a disk of this
    machine. What must come back decides whether workers pay: of 16 trees of 130 MB
    1000 new samples change 20 MB by ULS, 22 by IGT, 37 by RUST and all by RTST, while the update
    itself took 0.04, 0.04, 0.12 and 0.36 s on two threads.

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
    kept = None if resume is None else KeptResults(resume)
    if address is None:
        # Without results to keep nothing need be cut into parts.
        with using(None if kept is None else Resuming(InProcess(), kept)):
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
        with closing(engine), using(engine if kept is None else Resuming(engine, kept)):
            yield
