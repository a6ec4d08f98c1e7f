"""Durable examples and a model that follows them, in one folder."""
