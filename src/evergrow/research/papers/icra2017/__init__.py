"""Camoriano et al., ICRA 2017: least squares that learn new objects in constant time."""
