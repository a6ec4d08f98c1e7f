from .fisher import FisherVectors
from .local import LocalFeatures
from .patches import DensePatches, RandomPatches

__all__ = ["DensePatches", "FisherVectors", "LocalFeatures", "RandomPatches"]
