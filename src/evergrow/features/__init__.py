"""From images to numbers: reading, embeddings and local features."""

from evergrow.ragged import RaggedArray

__all__ = ["RaggedArray"]
