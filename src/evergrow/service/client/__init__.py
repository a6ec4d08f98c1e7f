"""A Python client of the service, written with the standard library only."""
