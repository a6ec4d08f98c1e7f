"""Features: of photographs, of tables, and by networks of transformers."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.measure import THREADS, call_in_child, show_figures, show_table
from benchmarks.pictures import RGB, as_jpeg, photographs
from benchmarks.processes import peak_bytes, reset_peak
from evergrow import Embedder
from evergrow.vision.embedding.model_zoo import PRETRAINED

_ROWS_PER_GROUP = 10_000


def images(quick: bool) -> None:
    """Embed photographs twice, the second time from the cache; and the network alone."""
    name, shown, _ = photographs(quick)
    rows: list[tuple[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.jpg" for number in range(len(shown))]
        for path, image in zip(paths, shown, strict=True):
            path.write_bytes(as_jpeg(image))
        embedder = Embedder(cache=Path(folder) / "cache", n_jobs=THREADS)
        # The network is loaded before the clock starts.
        embedder.transform(shown[:2])
        rows.append(("onnxruntime alone, batches ready", _network_seconds(shown, 32)))
        for label in ("Embedder, first run", "Embedder, second run, from the cache"):
            begin = time.perf_counter()
            embedder.transform(paths)
            rows.append((label, time.perf_counter() - begin))
    table = [(label, seconds, len(shown) / seconds) for label, seconds in rows]
    title = f"embedding {len(shown)} images, {THREADS} threads: {name}"
    show_table(title, ["", "s", "images per second"], table)


def _network_seconds(shown: list[RGB], size: int) -> float:
    """The network on the same pictures, prepared beforehand in batches."""
    import onnxruntime

    network = PRETRAINED["efficientnet-lite0"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(
        network.onnx(None), options, providers=["CPUExecutionProvider"]
    )
    batches = [
        np.stack([network.preprocessing(image) for image in shown[i : i + size]])
        for i in range(0, len(shown), size)
    ]
    name = session.get_inputs()[0].name
    session.run(None, {name: batches[0]})
    begin = time.perf_counter()
    for batch in batches:
        session.run(None, {name: batch})
    return time.perf_counter() - begin


def tables(quick: bool) -> None:
    """Shards of a Parquet file of a million embeddings: time, and memory beyond the libraries."""
    n, d = (100_000 if quick else 1_000_000), 512
    with tempfile.TemporaryDirectory() as folder:
        write_parquet(folder, n, d)
        seconds, beyond = call_in_child("benchmarks.embeddings:shard_parquet", folder)
    n_bytes = 4 * n * d
    show_figures(
        f"Parquet into shards, {n} x {d} float32",
        {
            "file, MB": n_bytes / 1e6,
            "time, s": seconds,
            "MB per second": n_bytes / seconds / 1e6,
            "peak memory beyond the libraries, MB": beyond / 1e6,
        },
    )


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
    """A network of transformers from its folder: time to convert it, and images per second."""
    import torch
    import transformers

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
        embedder = Embedder.from_pretrained(folder, cache=False, n_jobs=THREADS)
        converted = time.perf_counter() - start
    start = time.perf_counter()
    embedder.transform(pictures)
    ours = time.perf_counter() - start
    torch.set_num_threads(THREADS)
    start = time.perf_counter()
    with torch.no_grad():
        pixels = processor(images=pictures, return_tensors="pt")["pixel_values"]
        model(pixel_values=pixels)
    theirs = time.perf_counter() - start
    show_figures(
        f"DINOv2 of {layers} layers, random weights, {n} images",
        {
            "conversion, s": converted,
            "images per second": n / ours,
            "images per second, transformers": n / theirs,
        },
    )
