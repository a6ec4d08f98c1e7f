from .models.loader import load
from .models.pipelines import save
from .shards import ShardImages, ShardLabels, ShardPart, Shards, open_shards, write_shards
from .shards.importers import Sharded, shard_table
from .shards.parquet_file import write_parquet

__all__ = [
    "ShardImages",
    "ShardLabels",
    "ShardPart",
    "Sharded",
    "Shards",
    "load",
    "open_shards",
    "save",
    "shard_table",
    "write_parquet",
    "write_shards",
]
