"""Decode untrusted images in separate processes, which may crash without stopping the service."""
