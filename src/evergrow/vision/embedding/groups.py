"""Vectors of images group by group, wherever the engine in use runs its tasks."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs

from evergrow.estimators.classifier.learner import snapshot
from evergrow.foundation.engine import Arrays, Engine
from evergrow.foundation.errors import BadImage
from evergrow.vision.embedding.networks import Network
from evergrow.vision.embedding.vectors import EmbeddingTask
from evergrow.vision.images.extraction import Extraction
from evergrow.vision.images.groups import ImageGroup, bad_arrays, done_in_order
from evergrow.vision.images.sources import DEFAULT_LIMITS

if TYPE_CHECKING:
    from evergrow.vision.embedding.embedder import Embedder

__all__ = ["IMAGES_PER_TASK", "embed_by_groups", "embed_group"]

# A second or two of work, beside which handing it over vanishes.
IMAGES_PER_TASK = 128

# The network that tasks of this process used last: to make it takes as long as some dozens of
# images, and every task brings an embedder of its own.
_last: dict[str, Network] = {}
_lock = threading.Lock()


def embed_by_groups(
    engine: Engine,
    groups: Sequence[ImageGroup],
    embedder: Embedder,
    sources: Sequence[Any],
    on_error: str,
) -> Extraction:
    """Vectors of all images that can be read."""
    network = embedder.network()
    features = np.empty((len(sources), network.n_features), dtype=np.float32)
    kept = np.zeros(len(sources), dtype=bool)
    problems: list[BadImage] = []
    # What nobody can name is made once per call.
    key = (network.key or secrets.token_hex(16)) if engine.capacity.is_remote else None
    values = (embedder, key, engine.capacity.threads_per_worker)
    options: dict[str, Any] = {"on_error": on_error, "verbose": int(embedder.verbose)}
    for group, found, bad in done_in_order(
        engine, embed_group, groups, values, sources, what="Embedding images", **options
    ):
        places = group.first + found["kept"]
        features[places] = found["features"]
        kept[places] = True
        problems += bad
    places = np.flatnonzero(kept)
    return Extraction(features if kept.all() else features[places], places, tuple(problems))


def embed_group(group: ImageGroup, embedder: Embedder, key: str | None, n_threads: int) -> Arrays:
    """Vectors of some images; ``key`` names the network where tasks run in other processes."""
    if key is not None:
        # Workers that share a machine would all start a thread per processor.
        embedder = snapshot(embedder).set_params(n_jobs=n_threads)
    network = embedder.network() if key is None else _network(embedder, f"{key} {n_threads}")
    with contextlib.ExitStack() as stack:
        cache = embedder._open_cache(network)
        if cache is not None:
            stack.enter_context(cache)
        task = EmbeddingTask(
            network=network,
            cache=cache,
            limits=embedder.limits or DEFAULT_LIMITS,
            batch_size=int(embedder.batch_size),
            # Which is the first of all to be an error is not known here.
            skip_bad=True,
        )
        found = task.run(group.sources, effective_n_jobs(embedder.n_jobs), None)
    return {"features": found.features, "kept": found.kept, **bad_arrays(found.problems)}


def _network(embedder: Embedder, key: str) -> Network:
    with _lock:
        if key not in _last:
            _last.clear()
            _last[key] = embedder.network()
        return _last[key]
