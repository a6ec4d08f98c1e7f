from .models.loader import load
from .models.pipelines import save
from .shards import ShardImages, ShardLabels, ShardPart, Shards, open_shards, write_shards
from .shards.importers import Sharded, shard_table

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
    "write_shards",
]
