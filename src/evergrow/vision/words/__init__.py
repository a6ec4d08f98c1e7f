"""From descriptors of patches to words, and from words to one vector per image."""

from evergrow.vision.words.bag import BagOfWords
from evergrow.vision.words.erc import ERCForest
from evergrow.vision.words.evaluation import RocCurve, equal_error_rate, roc
from evergrow.vision.words.hierarchical import HierarchicalKMeans
from evergrow.vision.words.kdtrees import RandomKDTrees
from evergrow.vision.words.kmeans import KMeansCodebook
from evergrow.vision.words.pictures import leaf_patches, plot_roc, word_map
from evergrow.vision.words.presets import dense_sift_words
from evergrow.vision.words.vocabulary import Vocabulary

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
