"""Embeddings from elsewhere: tables into shards, and networks of transformers from a folder."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measure import Figure, call_in_child, report
from benchmarks.memory import peak_bytes, reset_peak

_ROWS_PER_GROUP = 10_000


def tables(quick: bool) -> None:
    """Shards of a Parquet file of a million embeddings: time, and memory beyond the libraries."""
    n, d = (100_000 if quick else 1_000_000), 512
    with tempfile.TemporaryDirectory() as folder:
        write_parquet(folder, n, d)
        seconds, beyond = call_in_child("benchmarks.embeddings:shard_parquet", folder)
    n_bytes = 4 * n * d
    figures = [
        Figure("file, MB", n_bytes / 1e6),
        Figure("time, s", seconds),
        Figure("MB per second", n_bytes / seconds / 1e6),
        Figure("peak memory beyond the libraries, MB", beyond / 1e6, 400, "at most"),
    ]
    report("embeddings", f"Parquet into shards, {n} x {d} float32", figures, bars=not quick)


def write_parquet(folder: str, n: int, d: int) -> None:
    """Random rows with one of a thousand classes, in groups."""
    import pyarrow
    import pyarrow.parquet

    vector = pyarrow.list_(pyarrow.float32(), d)
    schema = pyarrow.schema([("embedding", vector), ("label", pyarrow.string())])
    random = np.random.default_rng(0)
    with pyarrow.parquet.ParquetWriter(f"{folder}/rows.parquet", schema) as writer:
        for _ in range(0, n, _ROWS_PER_GROUP):
            rows = random.standard_normal(_ROWS_PER_GROUP * d, dtype=np.float32)
            lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows), d)
            names = [f"class {code}" for code in random.integers(0, 1000, _ROWS_PER_GROUP)]
            writer.write_table(pyarrow.table([lists, pyarrow.array(names)], schema=schema))


def shard_parquet(folder: str) -> tuple[float, int]:
    """Seconds, and peak memory beyond what the process has once a small file was read."""
    from evergrow.storage import shard_table

    small = Path(folder) / "small"
    small.mkdir()
    write_parquet(str(small), _ROWS_PER_GROUP, 8)
    shard_table(f"{folder}/warm", small / "rows.parquet")
    before = reset_peak()
    start = time.perf_counter()
    shard_table(f"{folder}/shards", f"{folder}/rows.parquet")
    seconds = time.perf_counter() - start
    return seconds, peak_bytes() - before


def networks(quick: bool) -> None:
    """Embeddings of a folder against those of transformers: how they differ, and how fast."""
    import torch
    import transformers
    from PIL import Image

    from evergrow import Embedder

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    layers = 2 if quick else 12
    config = transformers.Dinov2Config(
        hidden_size=384, num_hidden_layers=layers, num_attention_heads=6, image_size=518
    )
    random, n = np.random.default_rng(0), 8 if quick else 32
    pictures = [
        Image.fromarray(random.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((640, 480))
        for _ in range(n)
    ]
    with tempfile.TemporaryDirectory() as folder:
        model = transformers.Dinov2Model(config).eval()
        model.save_pretrained(folder)
        processor = transformers.BitImageProcessor(size={"shortest_edge": 256})
        processor.save_pretrained(folder)
        start = time.perf_counter()
        embedder = Embedder.from_pretrained(folder, cache=False, n_jobs=2)
        converted = time.perf_counter() - start
    start = time.perf_counter()
    found = embedder.transform(pictures)
    ours = time.perf_counter() - start
    torch.set_num_threads(2)
    start = time.perf_counter()
    with torch.no_grad():
        pixels = processor(images=pictures, return_tensors="pt")["pixel_values"]
        expected = model(pixel_values=pixels).pooler_output.numpy()
    theirs = time.perf_counter() - start
    largest = float(np.abs(found - expected).max() / np.abs(expected).max())
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    cosine = float(((found * expected).sum(1) / lengths).min())
    figures = [
        Figure("conversion, s", converted),
        Figure("largest difference / largest feature", largest, 2e-3, "at most"),
        Figure("lowest cosine", cosine, 0.99999),
        Figure("images per second", n / ours),
        Figure("images per second, transformers", n / theirs),
    ]
    title = f"DINOv2 of {layers} layers, random weights, {n} images"
    report("embeddings", title, figures, bars=not quick)
