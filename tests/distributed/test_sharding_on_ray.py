"""Images embedded by the workers of a cluster, a shard to a task."""

from __future__ import annotations

import evergrow
from evergrow.storage import Sharded
from evergrow.vision import Embedder, shard_images
from tests.vision.classifier.pictures import folder_of
from tests.vision.embedding.models import onnx_model


def test_workers_write_the_shards_that_this_process_writes(two_nodes, tmp_path):
    photos = folder_of(tmp_path / "photos", "red", "green", n=5)
    (tmp_path / "small.onnx").write_bytes(onnx_model().SerializeToString())
    embedder = Embedder(tmp_path / "small.onnx", cache=False)
    shard_images(tmp_path / "here", photos, embedder=embedder, rows_per_shard=3)
    with evergrow.cluster("auto"):
        there = [
            shard_images(tmp_path / "there", photos, embedder=embedder, rows_per_shard=3)
            for _ in range(2)
        ]
    assert there == [Sharded(10, 0), Sharded(0, 10)]
    shards = evergrow.open_shards(tmp_path / "there")
    shards.verify()
    assert shards.digest == evergrow.open_shards(tmp_path / "here").digest
