"""Codebooks: assign descriptors to visual words, and count the words of images.

``vocabulary`` is what all codebooks share, ``codebook`` the base of those that learn without
classes.
"""
