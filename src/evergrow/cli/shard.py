"""``evergrow shard``: store features in shards, for data larger than memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.models import find_to_learn
from evergrow.cli.options import (
    JOBS,
    NETWORK,
    ON_ERROR,
    QUIET,
    YES,
    command,
    make_embedder,
    output_forms,
    reads_labelled,
    verbosity,
)
from evergrow.cli.output import report, write_description
from evergrow.foundation.formatting import format_count, format_size

if TYPE_CHECKING:
    from evergrow.storage.shards import Shards
    from evergrow.storage.shards.importers import Sharded
    from evergrow.vision.images import LabelledImages


@command(
    "evergrow shard photos/ -o features",
    "evergrow shard features.npz more.parquet -o features --dtype float16",
    "evergrow shard rows.npy --labels classes.npy -o features",
    "evergrow shard part-*.parquet --embedding vector --label species -o features",
    "evergrow shard --verify --info -o features",
)
@click.argument("sources", nargs=-1, type=click.Path(), metavar="[SOURCE]...")
@click.option(
    "-o", "--output", "folder", type=click.Path(), required=True, help="Folder of shards."
)
@NETWORK
@click.option(
    "--features-key",
    "--embedding",
    "features_key",
    metavar="NAME",
    help="Array or column of features; by default X, or the only column of lists.",
)
@click.option(
    "--labels-key",
    "--label",
    "labels_key",
    metavar="NAME",
    help="Array or column of labels; by default y, label or labels.",
)
@click.option("--labels", type=click.Path(), help="An .npy file of labels for an .npy file.")
@click.option(
    "--dtype",
    type=click.Choice(["float16", "float32", "float64"]),
    help="Round numbers to this type; without it they are stored exactly.",
)
@click.option(
    "--rows-per-shard",
    type=click.IntRange(1),
    help="Rows per file; by default 64 MiB or 2048 images.",
)
@click.option(
    "--cluster", "address", metavar="ADDRESS", help="Embed on this Ray cluster; auto finds one."
)
@click.option(
    "--to-parquet", "target", type=click.Path(), help="Write all rows to this Parquet file."
)
@click.option("--verify", is_flag=True, help="Read all shards and check their hashes.")
@click.option("--info", is_flag=True, help="Describe the shards.")
@output_forms("json", "tsv")
@reads_labelled
@ON_ERROR
@YES
@JOBS
@QUIET
def shard(
    sources: tuple[str, ...],
    folder: str,
    network: str,
    dtype: str | None,
    rows_per_shard: int | None,
    address: str | None,
    target: str | None,
    verify: bool,
    info: bool,
    form: str | None,
    on_error: str,
    reading: dict[str, Any],
    yes: bool,
    jobs: int,
    quiet: bool,
    **of_tables: str | None,
) -> None:
    """Append the features of each SOURCE to a folder of shards.

    A SOURCE of labelled images is embedded: a folder with one folder of images per class, a table,
    COCO annotations or tar files, as in 'evergrow fit'. A SOURCE of features is an .npz, .npy,
    .parquet or .arrow file, a folder of .parquet files, or a folder written by 'save_to_disk' of
    the library datasets. Rows that are already in the shards are not added again, so you can run an
    interrupted command again to resume.
    """
    if not sources and not verify and not info and target is None:
        raise click.UsageError(
            "name a SOURCE to append, or use --verify, --info or --to-parquet FILE"
        )
    if form is not None and not info:
        raise click.UsageError(f"--{form} goes with --info")
    from evergrow.vision.images.labelled.finder import source_kind

    verbose = verbosity(quiet)
    of_images: dict[str, Any] = {"network": network, "jobs": jobs, "on_error": on_error}
    of_both: dict[str, Any] = {"dtype": dtype, "rows_per_shard": rows_per_shard, "verbose": verbose}
    with _cluster(address):
        for source in sources:
            with _explain_bad_folder(folder):
                if source_kind(source) is not None and not _is_table_folder(source):
                    found = find_to_learn(source, reading, yes=yes, quiet=quiet)
                    done = _append_images(folder, found, **of_images, **of_both)
                else:
                    done = _append_table(folder, source, **of_tables, **of_both)
            if not quiet:
                _report_added(source, done)
    from evergrow.storage.shards import open_shards

    shards = open_shards(folder)
    if verify:
        shards.verify(verbose=verbose)
    if target is not None:
        from evergrow.storage import write_parquet

        write_parquet(shards, target)
    if not quiet:
        _report_size(shards, folder, verified=verify)
    if info:
        description = _described(shards, folder)
        write_description(description, _facts(description), form)


@contextmanager
def _explain_bad_folder(folder: str) -> Iterator[None]:
    """Turn the error for a folder that cannot be created into a message about ``-o``."""
    name = click.format_filename(folder)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise click.BadParameter(f"{name!r} must be a folder or a new path", param_hint="-o")
    try:
        yield
    except OSError as error:
        path = Path(os.path.abspath(folder))
        if path.is_dir() or Path(str(error.filename)) not in (path, *path.parents):
            raise
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise click.BadParameter(
            f"{name!r} cannot be created ({reason})", param_hint="-o"
        ) from error


def _append_images(
    folder: str, found: LabelledImages, *, network: str, jobs: int, verbose: int, **options: Any
) -> Sharded:
    from evergrow.vision.embedding import shard_images

    embedder = make_embedder(network, n_jobs=jobs, verbose=verbose)
    on_wait = partial(_report_waiting, folder)
    return shard_images(
        folder, found, embedder=embedder, verbose=verbose, on_wait=on_wait, **options
    )


def _is_table_folder(folder: str) -> bool:
    from evergrow.storage.shards.importers import find_table_files

    return os.path.isdir(folder) and find_table_files(folder) is not None


def _append_table(folder: str, source: str, **options: Any) -> Sharded:
    from evergrow.storage.shards.importers import shard_table

    return shard_table(folder, source, on_wait=partial(_report_waiting, folder), **options)


def _report_waiting(folder: str) -> None:
    name = click.format_filename(folder)
    report(f"Waiting for another command that writes to {name!r}.")


def _cluster(address: str | None) -> AbstractContextManager[Any]:
    if address is None:
        return nullcontext()
    from evergrow.distributed import cluster

    found: AbstractContextManager[Any] = cluster(address)
    return found


def _report_added(source: str, done: Sharded) -> None:
    known = f", {done.n_present} already present" if done.n_present else ""
    left_out = f", {len(done.problems)} skipped" if done.problems else ""
    rows = format_count(done.n_added, "row")
    report(f"{source}: {rows} added{known}{left_out}.")


def _report_size(shards: Shards, folder: str, *, verified: bool) -> None:
    n_classes = 0 if shards.classes is None else len(shards.classes)
    counts = (format_count(len(shards), "row"), format_count(n_classes, "class"))
    files = format_count(len(shards.manifest.shards), "shard")
    as_written = ", all checksums correct" if verified else ""
    report(f"{folder}: {', '.join(counts)}, {files}{as_written}.")


def _facts(found: dict[str, Any]) -> list[tuple[str, Any]]:
    """Names and values for people."""
    return [
        ("Folder", found["folder"]),
        ("Rows", found["n_rows"]),
        ("Features", f"{found['n_features']} of type {found['dtype']}"),
        ("Images", found["n_images"]),
        ("Classes", found["n_classes"]),
        ("Without a label", found["n_unlabelled"] or None),
        ("Shards", found["n_shards"]),
        ("Size", format_size(found["size_bytes"])),
        ("Digest", found["digest"]),
    ]


def _described(shards: Shards, folder: str) -> dict[str, Any]:
    import numpy as np

    labels, classes = None if shards.classes is None else shards.labels, None
    if labels is not None:
        counts = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.classes))
        named = zip(labels.classes.tolist(), counts.tolist(), strict=True)
        classes = [{"class": label, "rows": count} for label, count in named]
    return {
        "folder": folder,
        "n_rows": len(shards),
        "n_features": shards.shape[1],
        "dtype": shards.dtype.name,
        "n_shards": len(shards.manifest.shards),
        "n_images": shards.n_items if shards.manifest.is_ragged else None,
        "n_classes": None if classes is None else len(classes),
        "n_unlabelled": shards.n_items if labels is None else labels.n_unlabelled,
        "size_bytes": shards.nbytes,
        "digest": shards.digest,
        "classes": classes,
    }
