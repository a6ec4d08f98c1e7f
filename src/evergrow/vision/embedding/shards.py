"""Shards of embeddings from a folder of images; each task writes one shard.

An image is identified by its class, its path within the folder, and its content. Images that are
already in the shards are skipped: an interrupted run continues, and a repeated run does nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import frozen_copy
from evergrow.foundation.engine import Arrays, Engine, Job, LocalEngine, current_engine, in_order
from evergrow.foundation.errors import BadImage, BadImageWarning, ImageError, InvalidInputError
from evergrow.foundation.params import check_parameters
from evergrow.storage.shards.array_files import check_once
from evergrow.storage.shards.batches import RowBatch
from evergrow.storage.shards.importers.source import Sharded, periodic_commits
from evergrow.storage.shards.manifest import DTYPES, ORIGIN_BYTES, Manifest
from evergrow.storage.shards.staging import StagedFiles, stage_files
from evergrow.storage.shards.writer import ShardWriter, open_writer
from evergrow.vision.embedding import Embedder
from evergrow.vision.images import LabelledImages, find_labelled
from evergrow.vision.images.folders import raise_unreadable
from evergrow.vision.images.parameters import ON_ERROR
from evergrow.vision.images.results import warn_about
from evergrow.vision.images.sources import DEFAULT_LIMITS, StoredImage, read_content

# Files that one task hashes.
_FILES_PER_TASK = 2048
# Default number of images per shard: half a minute of work for one processor.
_IMAGES_PER_SHARD = 2048


@dataclass(frozen=True)
class _Images:
    """Images with their classes."""

    root: str
    # Names relative to the root.
    names: tuple[str, ...]
    sources: tuple[Path | StoredImage, ...]
    labels: tuple[str, ...]
    codes: tuple[int, ...] = ()

    def part(self, first: int, last: int, codes: npt.NDArray[np.int32] | None = None) -> _Images:
        """A range of the images."""
        own = () if codes is None else tuple(codes[first:last].tolist())
        places = slice(first, last)
        return _Images(
            self.root, self.names[places], self.sources[places], self.labels[places], own
        )

    def where(self, wanted: npt.NDArray[np.bool_]) -> _Images:
        """The images that a mask selects."""
        places = np.flatnonzero(wanted).tolist()
        return _Images(
            self.root,
            tuple(self.names[i] for i in places),
            tuple(self.sources[i] for i in places),
            tuple(self.labels[i] for i in places),
        )


def shard_images(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str] | LabelledImages,
    *,
    embedder: Embedder | None = None,
    on_error: str = "raise",
    dtype: str | None = None,
    rows_per_shard: int | None = None,
    on_wait: Callable[[], None] | None = None,
    verbose: int = 0,
) -> Sharded:
    """Embed labelled images and append their vectors to a folder of shards.

    Inside :func:`evergrow.cluster`, each task embeds and writes one shard. Both folders must then
    have the same paths on all machines.

    Parameters
    ----------
    path : path
        The folder of shards. It is created if it does not exist.
    folder : path or LabelledImages
        A folder with one subfolder per class, another source that
        :func:`~evergrow.vision.find_labelled` reads, or its result.
    embedder : Embedder, default=None
        Computes the vectors. None uses the default network. A folder of shards accepts the vectors
        of one network only.
    on_error : {"raise", "skip"}, default="raise"
        Stop at an image that cannot be read, or skip it and warn. Finished shards are kept,
        and the next run continues after them.
    dtype : {"float16", "float32", "float64"}, default=None
        Type of the numbers in the files. None is that of the folder, or float32 for a new one.
    rows_per_shard : int, default=None
        Number of images per file. None is 2048, or fewer if those would take more than 64 MiB. An
        interrupted run loses unfinished files.
    on_wait : callable, default=None
        Called before waiting for another process that is appending to the folder.
    verbose : int, default=0
        Show progress bars if positive.

    Returns
    -------
    sharded : Sharded
        The numbers of images that were added or already present, and the problems.
    """
    check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
    found = folder if isinstance(folder, LabelledImages) else find_labelled(folder)
    if on_error == "raise":
        raise_unreadable(found.unreadable)
    warn_about(found.problems)
    root = Path(os.path.abspath(found.root))
    images = _Images(
        str(root),
        tuple(os.path.relpath(_full_name(source), root) for source in found.sources),
        tuple(map(_absolute, found.sources)),
        tuple(found.labels.tolist()),
    )
    embedder = Embedder(verbose=verbose) if embedder is None else embedder
    key = embedder.network().key
    made_by = None if key is None else hashlib.sha256(f"embedder {key}".encode()).hexdigest()
    engine = current_engine() or LocalEngine()
    appending = open_writer(
        path,
        dtype=dtype,
        rows_per_shard=rows_per_shard,
        made_by=made_by,
        on_wait=on_wait,
    )
    with appending as writer:
        new = _select_new(images, writer.folder, writer.manifest, engine, verbose)
        n_added, problems = 0, list(found.problems)
        if new.names:
            for n_rows, bad in _embed_shards(new, writer, embedder, on_error, engine, verbose):
                n_added += n_rows
                problems += bad
            if not n_added and writer.manifest is None:
                raise InvalidInputError(f"none of the {len(new.names)} images could be read")
    warn_about(problems[len(found.problems) :])
    return Sharded(n_added, len(images.names) - len(new.names), tuple(problems))


def _absolute(source: Path | StoredImage) -> Path | StoredImage:
    return Path(os.path.abspath(source)) if isinstance(source, Path) else source


def _full_name(source: Path | StoredImage) -> str:
    return os.path.abspath(source if isinstance(source, Path) else source.name)


def _select_new(
    images: _Images, folder: Path, manifest: Manifest | None, engine: Engine, verbose: int
) -> _Images:
    """The images that are not in the shards yet."""
    known = set() if manifest is None else set(_known_origins(folder, manifest))
    if not known:
        return images
    firsts = range(0, len(images.names), _FILES_PER_TASK)
    parts = [images.part(first, first + _FILES_PER_TASK) for first in firsts]
    is_new = np.ones(len(images.names), dtype=bool)
    job = Job(_hash_task, parts, description="looking for new images", verbose=verbose)
    for place, result in engine.run(job):
        for i, origin in enumerate(result["origins"]):
            is_new[firsts[place] + i] = origin.tobytes() not in known
    return images.where(is_new)


def _known_origins(folder: Path, manifest: Manifest) -> Iterator[bytes]:
    for shard in manifest.shards:
        file = shard.sidecar_file(folder, "origins")
        if file is not None:
            check_once(file)
            yield from (origin.tobytes() for origin in file.map())


def _embed_shards(
    images: _Images,
    writer: ShardWriter,
    embedder: Embedder,
    on_error: str,
    engine: Engine,
    verbose: int,
) -> Iterator[tuple[int, list[BadImage]]]:
    """Embed images shard by shard; yield the number of rows and the problems of each, in order."""
    n_features = embedder.n_features_out_
    dtype = writer.dtype or DTYPES["float32"]
    labels = list(images.labels)
    if writer.classes is not None:
        labels = writer.classes.from_text(labels).tolist()
    codes = writer.codes_of(labels, images.root)
    step = writer.rows_per_shard(n_features, dtype, most=_IMAGES_PER_SHARD)
    firsts = range(0, len(images.names), step)
    parts = [images.part(first, first + step, codes) for first in firsts]
    # One progress bar: of the shards, or of the images if there is a single shard.
    is_single = len(parts) == 1 and not engine.capacity.is_remote
    worker = _for_tasks(embedder, engine, verbose if is_single else 0)
    shared = (worker, str(writer.folder), dtype.name, on_error)
    bar = 0 if is_single else verbose
    results = engine.run(Job(_embed_task, parts, shared, "embedding shards", bar))
    with periodic_commits(writer) as commit_when_due:
        for place, result in in_order(results):
            report, n_rows = json.loads(result["report"].tobytes()), 0
            if report["files"] is not None:
                files = StagedFiles(**report["files"])
                n_rows = files.n_rows
                writer.adopt(files, n_features=n_features, dtype=dtype.name)
                commit_when_due()
            bad = [BadImage(firsts[place] + i, *rest) for i, *rest in report["problems"]]
            yield n_rows, bad


def _for_tasks(embedder: Embedder, engine: Engine, verbose: int) -> Embedder:
    # A copy that shares the loaded network.
    worker: Embedder = frozen_copy(embedder)
    if engine.capacity.is_remote:
        # With the default, all workers of a machine would start one thread per processor.
        worker.set_params(n_jobs=None)
    worker.set_params(verbose=verbose)
    return worker


def _hash_task(images: _Images) -> Arrays:
    """Task: hash images. An unreadable one gets zeros and is reported when it is embedded."""
    return {"origins": _hash_images(images, range(len(images.names)))}


def _hash_images(images: _Images, places: Sequence[int]) -> npt.NDArray[np.uint8]:
    found = np.zeros((len(places), ORIGIN_BYTES), dtype=np.uint8)
    for row, place in enumerate(places):
        hashed = hashlib.sha256(f"{images.labels[place]}\0".encode())
        # File names need not be valid text.
        hashed.update(os.fsencode(images.names[place]) + b"\0")
        try:
            # The content of files and stored images is bytes.
            hashed.update(cast(bytes, read_content(images.sources[place], DEFAULT_LIMITS)))
        except ImageError:
            continue
        found[row] = np.frombuffer(hashed.digest(), dtype=np.uint8)
    return found


def _embed_task(
    images: _Images, embedder: Embedder, folder: str, dtype: str, on_error: str
) -> Arrays:
    """Task: embed the images of one shard and write its files under unique names.

    If the task runs again it writes other files; unused files are removed later.
    """
    with warnings.catch_warnings():
        # All problems are reported together at the end.
        warnings.simplefilter("ignore", BadImageWarning)
        found = embedder.extract(images.sources, on_error=on_error)
    report: dict[str, Any] = {
        "files": None,
        "problems": [(bad.index, bad.source, bad.reason) for bad in found.problems],
    }
    if len(found.kept):
        origins = _hash_images(images, found.kept.tolist())
        rows = RowBatch(np.asarray(found.features), None, None).with_origins(origins)
        rows = rows.converted(DTYPES[dtype], f"images of {images.root!r}", rounded=True)
        codes = np.array(images.codes, dtype=np.int32)[found.kept]
        files = stage_files(Path(folder), DTYPES[dtype], [replace(rows, codes=codes)])
        report["files"] = asdict(files)
    content = json.dumps(report).encode()
    return {"report": np.frombuffer(content, dtype=np.uint8)}
