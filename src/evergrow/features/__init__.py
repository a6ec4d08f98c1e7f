"""From images to numbers: reading, embeddings and local features."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evergrow.features.embedder import Embedder
    from evergrow.features.extraction import Extraction
    from evergrow.features.finding import LabelledImages, find_images, find_labelled
    from evergrow.features.fisher import FisherVectors
    from evergrow.features.local import LocalFeatures
    from evergrow.features.many import BadImage, ReadImages, iterate_images, read_images
    from evergrow.features.networks import OnnxModel
    from evergrow.features.patches import DensePatches, RandomPatches
    from evergrow.features.preprocessing import Preprocessing
    from evergrow.features.reading import read_image
    from evergrow.features.sources import ReadLimits
    from evergrow.ragged import RaggedArray

__all__ = [
    "BadImage",
    "DensePatches",
    "Embedder",
    "Extraction",
    "FisherVectors",
    "LabelledImages",
    "LocalFeatures",
    "OnnxModel",
    "Preprocessing",
    "RaggedArray",
    "RandomPatches",
    "ReadImages",
    "ReadLimits",
    "find_images",
    "find_labelled",
    "iterate_images",
    "read_image",
    "read_images",
]

# Imported when first asked for: what only reads images starts without scikit-learn, in a tenth of
# the time.
_HOMES = {
    "evergrow.features.embedder": ("Embedder",),
    "evergrow.features.extraction": ("Extraction",),
    "evergrow.features.finding": ("LabelledImages", "find_images", "find_labelled"),
    "evergrow.features.fisher": ("FisherVectors",),
    "evergrow.features.local": ("LocalFeatures",),
    "evergrow.features.many": ("BadImage", "ReadImages", "iterate_images", "read_images"),
    "evergrow.features.networks": ("OnnxModel",),
    "evergrow.features.patches": ("DensePatches", "RandomPatches"),
    "evergrow.features.preprocessing": ("Preprocessing",),
    "evergrow.features.reading": ("read_image",),
    "evergrow.features.sources": ("ReadLimits",),
    "evergrow.ragged": ("RaggedArray",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'evergrow.features' has no attribute {name!r}")
    found = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *__all__})
