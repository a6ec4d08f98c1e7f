"""Files of features and labels into shards."""

from evergrow.storage.shards.importers.result import Sharded
from evergrow.storage.shards.importers.tables import shard_table

__all__ = ["Sharded", "shard_table"]
