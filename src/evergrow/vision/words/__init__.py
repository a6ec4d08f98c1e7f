"""Visual words: from descriptors of patches to words, and from words to one vector per image.

``codebooks`` assigns descriptors to words (k-means, trees) and counts words per image, ``erc`` is
the codebook that learns from classes, and ``bag`` turns images into vectors. ``evaluation`` and
``plots`` have ROC curves and pictures of words.
"""
