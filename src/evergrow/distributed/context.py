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
    verbose: int = 0,
) -> Iterator[None]:
    """Run estimators on a Ray cluster inside a ``with`` block.

    Estimators are used as usual and learn the same model: the same seed gives the same forest on
    any number of workers, or without a cluster. The fitted model is in this process, so the cluster
    is not needed after the block. See :doc:`/cluster`.

    Parameters
    ----------
    address : str or None, default="auto"
        The cluster:

        - ``"auto"``: the one in the environment variable ``RAY_ADDRESS``, otherwise one that runs
          on this machine, otherwise a new one on this machine;
        - ``"local"``: a new one on this machine;
        - ``"host:port"``: the cluster with this head node. This machine must be one of its nodes;
        - ``"ray://host:port"``: a cluster that this machine is not part of;
        - None: no cluster. All work runs in this process, so one script can do both.
    n_workers : int or None, default=None
        Maximum number of tasks at the same time. None is one per processor. Fewer workers need less
        memory and leave processors for other programs.
    threads_per_worker : int, default=1
        Number of processors per task. More threads mean fewer, larger processes, which need less
        memory but share the load less evenly.
    connect_timeout : float, default=30
        Seconds in which the cluster must answer. The time to import Ray does not count.
    retries : int, default=3
        How often a task is retried if its worker or node is lost.
    task_timeout : float or None, default=None
        Seconds after which a task is cancelled and started again, for workers that hang. None
        waits as long as the worker is alive.
    resume : path or None, default=None
        A folder for checkpoints. If the program stops, run it again with the same folder to resume.
        A checkpoint is used only with the same data, parameters and version. Remove the folder when
        the work is done.
    verbose : int, default=0
        Show progress bars for all work if positive, also of estimators with ``verbose=0``.

    Raises
    ------
    ImportError
        If Ray is not installed.
    ClusterError
        If no cluster answers, or if its nodes have another kind of processor or other versions of
        Python, Evergrow or NumPy.

    Notes
    -----
    Ray runs code for every client that can reach it. Newer versions of Ray ask for a token. A
    cluster that is started here creates one. For another cluster, set ``RAY_AUTH_MODE=token`` and
    ``RAY_AUTH_TOKEN``.

    ``partial_fit`` updates forests in this process: the trees would have to travel.

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
            verbose=int(verbose),
        )
        chosen = engine if store is None else CheckpointedEngine(engine, store)
        with closing(engine), use_engine(chosen):
            yield
