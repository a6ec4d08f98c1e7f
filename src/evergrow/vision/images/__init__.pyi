from .folders import find_images
from .labelled.coco_writer import save_coco
from .labelled.finder import find_labelled
from .labelled.labelled_images import LabelledImages
from .labelled.sorted_folders import SortedImages, sort_images
from .reader import iterate_images, read_image, read_images
from .results import Extraction, ReadImages
from .sources import ReadLimits
from .video import Frame, iterate_frames

__all__ = [
    "Extraction",
    "Frame",
    "LabelledImages",
    "ReadImages",
    "ReadLimits",
    "SortedImages",
    "find_images",
    "find_labelled",
    "iterate_frames",
    "iterate_images",
    "read_image",
    "read_images",
    "save_coco",
    "sort_images",
]
