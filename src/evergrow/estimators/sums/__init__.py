"""Batches of examples and sums over them, which least squares and class means learn from."""
