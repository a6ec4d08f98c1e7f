"""Train one forest from shards: in this process, on this machine's Ray, or on a cluster.

    python examples/train_anywhere.py features/
    python examples/train_anywhere.py features/ --address auto
    python examples/train_anywhere.py features/ --address ray://head:10001 --resume run/

The forest is the same each time.
"""

from __future__ import annotations

import argparse
import sys
import time

import evergrow
from evergrow.estimators import Storage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shards", help="a folder made by evergrow shard")
    parser.add_argument("--address", help='"auto", "host:port" or "ray://host:port"')
    parser.add_argument("--resume", help="a folder for finished trees, to go on after a stop")
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--limit", help='samples in memory, such as "4GiB"')
    parser.add_argument("--output", default="forest.evergrow")
    options = parser.parse_args()
    try:
        train(options)
    except (OSError, ValueError, ImportError, evergrow.ClusterError) as error:
        sys.exit(f"{parser.prog}: {error}")


def train(options: argparse.Namespace) -> None:
    shards = evergrow.open_shards(options.shards)
    forest = evergrow.NCMForestClassifier(
        options.trees, n_jobs=-1, storage=Storage(options.limit), random_state=0, verbose=1
    )
    start = time.perf_counter()
    with evergrow.cluster(options.address, resume=options.resume):
        forest.fit(shards, shards.labels)
    print(f"{len(shards)} samples, {options.trees} trees: {time.perf_counter() - start:.1f} s")
    forest.save(options.output, inference_only=True)


if __name__ == "__main__":
    main()
