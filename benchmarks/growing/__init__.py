"""Forests that grow: how long updates take next to retraining, and what they keep of it."""
