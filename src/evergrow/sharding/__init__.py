"""Putting images and tables of features into shards."""

from evergrow.sharding.images import shard_images
from evergrow.sharding.result import Sharded
from evergrow.sharding.tables import shard_table

__all__ = ["Sharded", "shard_images", "shard_table"]
