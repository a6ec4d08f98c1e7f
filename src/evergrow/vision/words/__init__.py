"""Visual words: from descriptors of patches to words, and from words to one vector per image.

``codebooks`` assigns descriptors to words (k-means, trees) and counts words per image, ``erc`` is
the codebook that learns from classes, and ``bag`` turns images into vectors. ``evaluation`` and
``plots`` have ROC curves and pictures of words.
"""

from evergrow.vision.words.bag.bag_of_words import BagOfWords
from evergrow.vision.words.bag.presets import dense_sift_words
from evergrow.vision.words.codebooks.hierarchical_kmeans import HierarchicalKMeans
from evergrow.vision.words.codebooks.kmeans_codebook import KMeansCodebook
from evergrow.vision.words.codebooks.random_kd_trees import RandomKDTrees
from evergrow.vision.words.codebooks.vocabulary import Vocabulary
from evergrow.vision.words.erc.erc_forest import ERCForest
from evergrow.vision.words.evaluation import RocCurve, equal_error_rate, roc
from evergrow.vision.words.plots import leaf_patches, plot_roc, word_map

__all__ = [
    "BagOfWords",
    "ERCForest",
    "HierarchicalKMeans",
    "KMeansCodebook",
    "RandomKDTrees",
    "RocCurve",
    "Vocabulary",
    "dense_sift_words",
    "equal_error_rate",
    "leaf_patches",
    "plot_roc",
    "roc",
    "word_map",
]
