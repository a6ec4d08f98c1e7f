"""Least squares and class means: time of an example, of a stream, and of choosing a penalty.

The accuracies here are those that no experiment measures; others are in
``evergrow experiment icra2017`` and ``evergrow experiment cvpr2014-fig10``.
"""
