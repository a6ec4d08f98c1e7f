from .fisher_vectors import FisherVectors
from .local_features import LocalFeatures
from .patches import DensePatches, RandomPatches

__all__ = ["DensePatches", "FisherVectors", "LocalFeatures", "RandomPatches"]
