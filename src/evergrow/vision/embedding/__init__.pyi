from .embedder import Embedder
from .networks import OnnxModel
from .preprocessing import Preprocessing
from .shards import shard_images

__all__ = ["Embedder", "OnnxModel", "Preprocessing", "shard_images"]
