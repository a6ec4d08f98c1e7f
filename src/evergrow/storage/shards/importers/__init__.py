"""Files of features and labels into shards."""

from evergrow.storage.shards.importers.source import Sharded
from evergrow.storage.shards.importers.table_files import read_table, shard_table

__all__ = ["Sharded", "read_table", "shard_table"]
