from .extraction import Extraction
from .finding import LabelledImages, find_images, find_labelled
from .many import ReadImages, iterate_images, read_images
from .reading import read_image
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
