"""Camoriano et al. 2017: least squares that learn new objects in fixed time."""
