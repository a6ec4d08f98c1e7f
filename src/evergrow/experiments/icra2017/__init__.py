"""Experiments of Camoriano et al. 2017: least squares that take in new classes."""
