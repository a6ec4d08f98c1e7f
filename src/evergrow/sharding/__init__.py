"""From pictures and files to folders of shards."""
