"""Folders of images into shards of their embeddings, a shard to a task.

An image is known by its class, its path within the folder, and its content: what is in the shards
already is not embedded again, so that an interrupted run goes on, and one that is repeated does
nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import snapshot
from evergrow.foundation.engine import Arrays, Engine, Job, LocalEngine, current_engine, in_order
from evergrow.foundation.errors import BadImage, BadImageWarning
from evergrow.foundation.params import check_parameters
from evergrow.storage.shards.cutting import Piece
from evergrow.storage.shards.finishing import FilesAside, write_files_aside
from evergrow.storage.shards.importers.commits import committing
from evergrow.storage.shards.importers.result import Sharded
from evergrow.storage.shards.incoming import Incoming
from evergrow.storage.shards.manifest import DTYPES, ORIGIN_BYTES, Manifest
from evergrow.storage.shards.verifying import check_once
from evergrow.storage.shards.writing import ShardWriter, writing
from evergrow.vision.embedding import Embedder
from evergrow.vision.images.finding import find_labelled, raise_first
from evergrow.vision.images.many import ON_ERROR, warn_of

__all__ = ["shard_images"]

# Files whose content is hashed by one task.
_HASHED_TOGETHER = 2048
_CHUNK_BYTES = 1 << 20
# Images of a shard where nobody says how many: half a minute for one processor.
_IMAGES_TOGETHER = 2048


@dataclass(frozen=True)
class _Images:
    """Images of one shard to be: where they lie, what they are called, and their classes."""

    root: str
    # Paths within the root.
    names: tuple[str, ...]
    labels: tuple[str, ...]
    codes: tuple[int, ...] = ()

    def part(self, first: int, last: int, codes: npt.NDArray[np.int32] | None = None) -> _Images:
        """Some of them."""
        mine = () if codes is None else tuple(codes[first:last].tolist())
        return _Images(self.root, self.names[first:last], self.labels[first:last], mine)

    def where(self, wanted: npt.NDArray[np.bool_]) -> _Images:
        """Those at some places."""
        places = np.flatnonzero(wanted).tolist()
        names, labels = self.names, self.labels
        return _Images(self.root, tuple(names[i] for i in places), tuple(labels[i] for i in places))

    @property
    def paths(self) -> list[Path]:
        """Where they lie."""
        return [Path(self.root, name) for name in self.names]


def shard_images(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    embedder: Embedder | None = None,
    on_error: str = "raise",
    dtype: str | None = None,
    rows_per_shard: int | None = None,
    say_waiting: Callable[[], None] | None = None,
    verbose: int = 0,
) -> Sharded:
    """Embed the images of a folder and append their vectors to a folder of shards.

    Where a cluster is in use each of its tasks embeds and writes one shard: the folders of images
    and of shards must then be reachable by the same paths from all machines.

    Parameters
    ----------
    path : path
        The folder of shards; made if it is missing.
    folder : path
        Holds one folder of images per class.
    embedder : Embedder, default=None
        What makes vectors of images; None for the usual network. A folder of shards takes the
        vectors of one network only.
    on_error : {"raise", "skip"}, default="raise"
        Stop at an image that cannot be read, or leave it out and warn. Shards that were finished
        before stay, and the next run goes on after them.
    dtype : {"float16", "float32", "float64"}, default=None
        Type of the numbers in the files; None for that of the folder, else float32.
    rows_per_shard : int, default=None
        Images in a shard; None for 2048, or fewer where those would take more than 64 MiB. A
        shard is what one task embeds, and what an interrupted run may lose.
    say_waiting : callable, default=None
        Called if another process is appending to the folder, before waiting for it.
    verbose : int, default=0
        Show progress bars when positive.

    Returns
    -------
    sharded : Sharded
        How many images were added, were known, and could not be read.
    """
    check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
    found = find_labelled(folder)
    if on_error == "raise":
        raise_first(found.unreadable)
    warn_of(found.problems)
    root = Path(os.path.abspath(folder))
    images = _Images(
        str(root),
        tuple(os.path.relpath(os.path.abspath(path), root) for path in found.paths),
        tuple(found.labels.tolist()),
    )
    embedder = Embedder(verbose=verbose) if embedder is None else embedder
    key = embedder.network().key
    made_by = None if key is None else hashlib.sha256(f"embedder {key}".encode()).hexdigest()
    engine = current_engine() or LocalEngine()
    appending = writing(
        path,
        dtype=dtype,
        rows_per_shard=rows_per_shard,
        made_by=made_by,
        say_waiting=say_waiting,
    )
    with appending as writer:
        new = _unknown(images, writer.folder, writer.manifest, engine, verbose)
        n_added, problems = 0, list(found.problems)
        if new.names:
            for n_rows, bad in _embedded(new, writer, embedder, on_error, engine, verbose):
                n_added += n_rows
                problems += bad
            if not n_added and writer.manifest is None:
                raise ValueError(f"none of the {len(new.names)} images could be read")
    warn_of(problems[len(found.problems) :])
    return Sharded(n_added, len(images.names) - len(new.names), tuple(problems))


def _unknown(
    images: _Images, folder: Path, manifest: Manifest | None, engine: Engine, verbose: int
) -> _Images:
    """Those images that are not in the shards."""
    known = set() if manifest is None else set(_known_origins(folder, manifest))
    if not known:
        return images
    firsts = range(0, len(images.names), _HASHED_TOGETHER)
    parts = [images.part(first, first + _HASHED_TOGETHER) for first in firsts]
    is_new = np.ones(len(images.names), dtype=bool)
    job = Job(_origins_task, parts, description="looking for new images", verbose=verbose)
    for place, result in engine.run(job):
        for i, origin in enumerate(result["origins"]):
            is_new[firsts[place] + i] = origin.tobytes() not in known
    return images.where(is_new)


def _known_origins(folder: Path, manifest: Manifest) -> Iterator[bytes]:
    for shard in manifest.shards:
        file = shard.file_beside(folder, "origins")
        if file is not None:
            check_once(file)
            yield from (origin.tobytes() for origin in file.map())


def _embedded(
    images: _Images,
    writer: ShardWriter,
    embedder: Embedder,
    on_error: str,
    engine: Engine,
    verbose: int,
) -> Iterator[tuple[int, list[BadImage]]]:
    """Embed images shard by shard; give rows and problems of each, in order."""
    n_features = embedder.n_features_out_
    dtype = writer.dtype or DTYPES["float32"]
    labels = list(images.labels)
    if writer.classes is not None:
        labels = writer.classes.from_text(labels).tolist()
    codes = writer.codes_of(labels, images.root)
    step = writer.rows_per_shard(n_features, dtype, most=_IMAGES_TOGETHER)
    firsts = range(0, len(images.names), step)
    parts = [images.part(first, first + step, codes) for first in firsts]
    # One bar: that of the shards, or that of the images of a single one.
    is_single = len(parts) == 1 and not engine.capacity.is_remote
    worker = _settled(embedder, engine, verbose if is_single else 0)
    shared = (worker, str(writer.folder), dtype.name, on_error)
    bar = 0 if is_single else verbose
    results = engine.run(Job(_embed_task, parts, shared, "embedding shards", bar))
    with committing(writer) as commit_now_and_then:
        for place, result in in_order(results):
            report, n_rows = json.loads(result["report"].tobytes()), 0
            if report["files"] is not None:
                files = FilesAside.of(report["files"])
                n_rows = files.n_rows
                writer.adopt(files, n_features=n_features, dtype=dtype.name)
                commit_now_and_then()
            bad = [BadImage(firsts[place] + i, *told) for i, *told in report["problems"]]
            yield n_rows, bad


def _settled(embedder: Embedder, engine: Engine, verbose: int) -> Embedder:
    # A copy of the caller's, with the network that it has loaded.
    worker: Embedder = snapshot(embedder)
    if engine.capacity.is_remote:
        # Workers that share a machine would all start a thread per processor.
        worker.set_params(n_jobs=None)
    worker.set_params(verbose=verbose)
    return worker


def _origins_task(images: _Images) -> Arrays:
    """Hash images; one that cannot be read is met again, and reported, when it is embedded."""
    return {"origins": _origins(images, range(len(images.names)))}


def _origins(images: _Images, places: Sequence[int]) -> npt.NDArray[np.uint8]:
    found = np.zeros((len(places), ORIGIN_BYTES), dtype=np.uint8)
    paths = images.paths
    for row, place in enumerate(places):
        hashed = hashlib.sha256(f"{images.labels[place]}\0".encode())
        # Names of files need not be text.
        hashed.update(os.fsencode(images.names[place]) + b"\0")
        try:
            with open(paths[place], "rb") as file:
                while chunk := file.read(_CHUNK_BYTES):
                    hashed.update(chunk)
        except OSError:
            continue
        found[row] = np.frombuffer(hashed.digest(), dtype=np.uint8)
    return found


def _embed_task(
    images: _Images, embedder: Embedder, folder: str, dtype: str, on_error: str
) -> Arrays:
    """Embed the images of one shard and write its files under names of their own.

    Whoever runs it again writes other files; those that nobody asks for are removed later.
    """
    with warnings.catch_warnings():
        # All are reported together at the end.
        warnings.simplefilter("ignore", BadImageWarning)
        found = embedder.extract(images.paths, on_error=on_error)
    report: dict[str, Any] = {
        "files": None,
        "problems": [(bad.index, bad.source, bad.reason) for bad in found.problems],
    }
    if len(found.kept):
        origins = _origins(images, found.kept.tolist())
        rows = Incoming(np.asarray(found.features), None, None).with_origins(origins)
        rows = rows.converted(DTYPES[dtype], f"images of {images.root!r}", rounded=True)
        codes = np.array(images.codes, dtype=np.int32)[found.kept]
        files = write_files_aside(Path(folder), DTYPES[dtype], [Piece.of(rows, codes)])
        report["files"] = asdict(files)
    content = json.dumps(report).encode()
    return {"report": np.frombuffer(content, dtype=np.uint8)}
