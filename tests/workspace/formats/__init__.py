"""Workspaces of every format there was, kept as text where that can be."""
