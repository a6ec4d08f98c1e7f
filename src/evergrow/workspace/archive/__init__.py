"""Labelled pictures as class folders with a table, in a zip file or in a folder.

``archive`` decides as of one moment which pictures go where, and sends or writes them afterwards;
``zip_stream`` is the zip format, written front to back.
"""
