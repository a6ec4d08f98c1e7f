"""Guo et al.: incremental learning of random forests, with SVM forests and decision maps."""
