"""From images to numbers: reading, embeddings and local features."""

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
