"""One script on one machine and on a cluster of two nodes: the same forest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import evergrow

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


def test_the_pages_examples_run_one_after_the_other(two_nodes, run_script, tmp_path):
    blocks = _python_blocks("docs/cluster.md")
    assert len(blocks) == 5
    # "auto" must not find a cluster of another user on this machine.
    there = f"os.environ['RAY_ADDRESS'] = {two_nodes.address!r}"
    start = f"import os\nos.chdir({str(tmp_path)!r})\n{there}\n"
    scores = "[model.score(shards, shards.labels) > 0.9 for model in (forest, grown)]"
    end = f"print({scores})\nnodes.shutdown()\n"
    done = run_script(start + "\n".join(blocks) + end, RAY_AUTH_MODE="disabled")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["(10000, 32)", "[True, True]"]
