"""Builds, checks and tests what a release publishes; `make dist` and the workflow run it.

Start with ``__main__.py``, which has the steps in their order. ``sbom.py`` also runs inside every
build of a wheel, without anything installed.
"""
