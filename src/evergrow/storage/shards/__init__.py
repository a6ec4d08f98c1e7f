"""Features in a folder of files that together are one matrix."""

from evergrow.storage.shards.labels import ShardLabels
from evergrow.storage.shards.reader import ShardPart, Shards, open_shards
from evergrow.storage.shards.rows import ChosenRows, ShardImages, StoredRows, choose_rows, join_rows
from evergrow.storage.shards.writer import write_shards

__all__ = [
    "ChosenRows",
    "ShardImages",
    "ShardLabels",
    "ShardPart",
    "Shards",
    "StoredRows",
    "choose_rows",
    "join_rows",
    "open_shards",
    "write_shards",
]
