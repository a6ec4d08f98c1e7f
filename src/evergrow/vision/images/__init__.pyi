from .folders import find_images
from .labelled.finder import find_labelled
from .labelled.labelled_images import LabelledImages
from .reader import iterate_images, read_image, read_images
from .results import Extraction, ReadImages
from .sources import ReadLimits

__all__ = [
    "Extraction",
    "LabelledImages",
    "ReadImages",
    "ReadLimits",
    "find_images",
    "find_labelled",
    "iterate_images",
    "read_image",
    "read_images",
]
