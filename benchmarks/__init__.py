"""Measurements behind every figure in the docs: ``python -m benchmarks NAME``."""
