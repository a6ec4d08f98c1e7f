"""Small folders of shards, and ways to spoil them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evergrow import Shards, open_shards, write_shards
from evergrow.storage.shards.manifest import _hash

N_ROWS, N_FEATURES = 100, 6
X = np.random.default_rng(0).normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
Y = np.array(["cat", "dog", "ant", "bee"])[np.arange(N_ROWS) % 4]


def folder_of_shards(path: Path, *, rows_per_shard: int = 30, n: int = N_ROWS) -> Shards:
    """The first rows of X and their labels, in batches of another size than the shards."""
    batches = [(X[a : min(n, a + 17)], Y[a : min(n, a + 17)]) for a in range(0, n, 17)]
    return write_shards(path, batches, rows_per_shard=rows_per_shard)


def rewrite(path: Path, change: Callable[[dict[str, Any]], Any], *, honest: bool = True) -> None:
    """Change a manifest; its own checksum fits again if honest."""
    file = path / "shards.json"
    content = json.loads(file.read_text())
    del content["sha256"]
    change(content)
    # A checksum of what is there, as a liar would make it.
    digest = _hash(content) if honest else "0" * 64
    file.write_text(json.dumps({**content, "sha256": digest}))


def files_of(path: Path) -> list[str]:
    """Names of all files, hidden ones too."""
    return sorted(file.name for file in path.iterdir())


def check_nothing_is_lost(folder: Path, n_before: int) -> None:
    """An append of 30 rows that failed is done or not done, and the next one works."""
    n_now = 0
    if (folder / "shards.json").exists():
        shards = open_shards(folder)
        shards.verify()
        n_now = len(shards)
    assert n_now in (n_before, n_before + 30)
    after = write_shards(folder, [(X[:5], Y[:5])])
    after.verify()
    assert len(after) == n_now + 5
    np.testing.assert_array_equal(after[:n_before], X[:n_before])
    named = {name for shard in after.manifest.shards for name in shard.names}
    assert set(files_of(folder)) == {*named, "shards.json"}
