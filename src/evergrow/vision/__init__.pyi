from .classifier import Answers, ImageClassifier, ImageReport, draw_confusion
from .descriptors import DensePatches, FisherVectors, LocalFeatures, RandomPatches
from .embedding import Embedder, OnnxModel, Preprocessing, shard_images
from .images import (
    Extraction,
    Frame,
    LabelledImages,
    ReadImages,
    ReadLimits,
    SortedImages,
    find_images,
    find_labelled,
    iterate_frames,
    iterate_images,
    read_image,
    read_images,
    save_coco,
    sort_images,
)
from .words.bag.bag_of_words import BagOfWords
from .words.bag.presets import dense_sift_words
from .words.codebooks.hierarchical_kmeans import HierarchicalKMeans
from .words.codebooks.kmeans_codebook import KMeansCodebook
from .words.codebooks.random_kd_trees import RandomKDTrees
from .words.codebooks.vocabulary import Vocabulary
from .words.erc.erc_forest import ERCForest
from .words.evaluation import RocCurve, equal_error_rate, roc
from .words.plots import leaf_patches, word_map

__all__ = [
    "Answers",
    "BagOfWords",
    "DensePatches",
    "ERCForest",
    "Embedder",
    "Extraction",
    "FisherVectors",
    "Frame",
    "HierarchicalKMeans",
    "ImageClassifier",
    "ImageReport",
    "KMeansCodebook",
    "LabelledImages",
    "LocalFeatures",
    "OnnxModel",
    "Preprocessing",
    "RandomKDTrees",
    "RandomPatches",
    "ReadImages",
    "ReadLimits",
    "RocCurve",
    "SortedImages",
    "Vocabulary",
    "dense_sift_words",
    "draw_confusion",
    "equal_error_rate",
    "find_images",
    "find_labelled",
    "iterate_frames",
    "iterate_images",
    "leaf_patches",
    "read_image",
    "read_images",
    "roc",
    "save_coco",
    "shard_images",
    "sort_images",
    "word_map",
]
