"""Sums, codes, embeddings and the examples of the documentation on a real Ray cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import evergrow
from evergrow import Embedder, NCMClassifier, RaggedArray, RLSClassifier
from evergrow.foundation.errors import ImageError, ShardError
from evergrow.storage import Sharded
from evergrow.storage.shards import parts
from evergrow.vision import BagOfWords, KMeansCodebook, shard_images
from tests.vision.classifier.pictures import folder_of
from tests.vision.embedding.models import onnx_model


def mean_colours(images):
    return [image.mean(axis=(0, 1)) for image in images]


@pytest.fixture(scope="module")
def shards(rows, tmp_path_factory):
    """The rows in eight files."""
    folder = tmp_path_factory.mktemp("sums") / "shards"
    return evergrow.write_shards(folder, [rows], rows_per_shard=400)


@pytest.mark.parametrize(
    "make",
    [lambda: RLSClassifier(random_state=0), lambda: NCMClassifier(metric="mahalanobis")],
    ids=["least squares", "means"],
)
def test_sums_over_shards_give_the_model_of_one_pass(engine, rows, shards, make):
    X, y = rows
    found = make().fit(shards, shards.labels).predict_proba(shards)
    with evergrow.cluster(None):
        expected = make().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_rows_in_memory_are_shared_and_summed_by_ranges(engine, rows, monkeypatch):
    monkeypatch.setattr(parts, "_PART_BYTES", 1)
    X, y = rows
    before = engine.n_bytes
    model = RLSClassifier(regularization=1.0, recoding=0.0).fit(X, y)
    # The products of 41 features, the sums of 12 classes, and a few numbers of each.
    assert engine.n_bytes - before == 8 * (41 * 42 // 2 + 12 * 41 + 12 * 4)
    with evergrow.cluster(None):
        expected = RLSClassifier(regularization=1.0, recoding=0.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)


def test_a_damaged_shard_is_named_from_a_worker(engine, rows, tmp_path):
    shards = evergrow.write_shards(tmp_path / "shards", [rows], rows_per_shard=1000)
    damaged = tmp_path / "shards" / shards.parts[1].file
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    model = NCMClassifier()
    with pytest.raises(ShardError, match=damaged.name):
        model.fit(shards, shards.labels)
    assert not hasattr(model, "classes_")


def test_images_in_shards_are_coded_by_shard(engine, rows, tmp_path):
    X, _ = rows
    images = RaggedArray(X, np.arange(0, len(X) + 1, 30))
    shards = evergrow.write_shards(tmp_path / "shards", [images], rows_per_shard=600)
    bag = BagOfWords(KMeansCodebook(20), random_state=0, n_training_descriptors=500).fit(shards)
    found = bag.transform(shards)
    with evergrow.cluster(None):
        assert (bag.transform(images) != found).nnz == 0


def test_images_are_embedded_by_groups(engine):
    images = [np.full((6, 6, 3), i % 256, np.uint8) for i in range(300)]
    vectors = Embedder(mean_colours).transform(images)
    np.testing.assert_array_equal(vectors[:, 0], np.arange(300) % 256)
    with pytest.raises(ImageError, match="<4 bytes>"):
        Embedder(mean_colours).transform([*images, b"text"])


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


_ROOT = Path(__file__).parents[2]
_SCRIPT = _ROOT / "examples" / "train_anywhere.py"


def _python_blocks(page):
    text = (_ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def _trained(shards, model, *options):
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    environment.pop("RAY_ADDRESS", None)
    command = [sys.executable, str(_SCRIPT), str(shards), "--trees", "6", "--output", str(model)]
    done = subprocess.run(
        [*command, *options], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3000 samples, 6 trees: ")
    return evergrow.load(model)


def test_the_same_script_trains_the_same_forest_here_and_on_two_nodes(two_nodes, rows, tmp_path):
    X, y = rows
    shards = tmp_path / "features"
    evergrow.write_shards(shards, [(X[:2000], y[:2000]), (X[2000:], y[2000:])])
    here = _trained(shards, tmp_path / "here.evergrow")
    there = _trained(
        shards,
        tmp_path / "there.evergrow",
        *("--address", two_nodes.address, "--resume", str(tmp_path / "finished")),
    )
    assert len(list((tmp_path / "finished").iterdir())) > 1
    np.testing.assert_array_equal(here.apply(X), there.apply(X))
    np.testing.assert_array_equal(here.predict_proba(X), there.predict_proba(X))


@pytest.mark.nightly
def test_the_pages_examples_run_one_after_the_other(two_nodes, run_script, tmp_path):
    blocks = _python_blocks("docs/cluster.md")
    assert len(blocks) == 4
    # "auto" must not find a cluster of another user on this machine.
    there = f"os.environ['RAY_ADDRESS'] = {two_nodes.address!r}"
    start = f"import os\nos.chdir({str(tmp_path)!r})\n{there}\n"
    end = "print(forest.score(shards, shards.labels) > 0.9)\nnodes.shutdown()\n"
    done = run_script(start + "\n".join(blocks) + end, RAY_AUTH_MODE="disabled")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["(10000, 32)", "True"]
