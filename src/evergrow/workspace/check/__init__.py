"""Integrity checks, repair and backup of a workspace."""
