"""From descriptors of patches to words, and from words to one vector per image."""

from evergrow.codebook.bag import BagOfWords
from evergrow.codebook.erc import ERCForest
from evergrow.codebook.evaluation import RocCurve, equal_error_rate, roc
from evergrow.codebook.hierarchical import HierarchicalKMeans
from evergrow.codebook.kdtrees import RandomKDTrees
from evergrow.codebook.kmeans import KMeansCodebook
from evergrow.codebook.pictures import leaf_patches, plot_roc, word_map
from evergrow.codebook.presets import dense_sift_words
from evergrow.codebook.vocabulary import Vocabulary

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
