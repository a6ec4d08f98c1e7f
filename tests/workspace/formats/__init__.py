"""Workspaces of every earlier format, stored as text where possible."""
