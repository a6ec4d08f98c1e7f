"""Tables of features and labels into shards."""

from evergrow.storage.shards.importers.source import Sharded
from evergrow.storage.shards.importers.table_files import find_table_files, read_table, shard_table

__all__ = ["Sharded", "find_table_files", "read_table", "shard_table"]
