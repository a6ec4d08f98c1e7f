"""From descriptors of patches to words, and from words to one vector per image."""

from evergrow.codebook.bag import BagOfWords
from evergrow.codebook.erc import ERCForest
from evergrow.codebook.hierarchical import HierarchicalKMeans
from evergrow.codebook.kdtrees import RandomKDTrees
from evergrow.codebook.kmeans import KMeansCodebook
from evergrow.codebook.vocabulary import Vocabulary

__all__ = [
    "BagOfWords",
    "ERCForest",
    "HierarchicalKMeans",
    "KMeansCodebook",
    "RandomKDTrees",
    "Vocabulary",
]
