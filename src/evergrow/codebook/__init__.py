"""From descriptors of patches to words, and from words to one vector per image."""

from evergrow.codebook.evaluation import RocCurve, equal_error_rate, roc
from evergrow.codebook.hierarchical import HierarchicalKMeans
from evergrow.codebook.kdtrees import RandomKDTrees
from evergrow.codebook.kmeans import KMeansCodebook
from evergrow.codebook.vocabulary import Vocabulary

__all__ = [
    "HierarchicalKMeans",
    "KMeansCodebook",
    "RandomKDTrees",
    "RocCurve",
    "Vocabulary",
    "equal_error_rate",
    "roc",
]
