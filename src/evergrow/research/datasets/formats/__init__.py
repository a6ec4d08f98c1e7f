"""Readers of the file formats of data sets, one module per format."""
