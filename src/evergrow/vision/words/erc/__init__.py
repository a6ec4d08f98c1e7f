"""Extremely randomised clustering forests: a codebook that learns from classes.

Start with ``erc_forest`` (training); ``predictor`` has coding, voting and model files, ``fitted``
what was learnt.
"""
