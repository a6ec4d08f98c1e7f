"""Talking to a service from Python."""
