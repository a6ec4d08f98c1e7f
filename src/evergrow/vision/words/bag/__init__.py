"""Bags of words: the words of an image, counted and pooled into one vector.

Start with ``bag_of_words``. ``learner`` trains it, ``fitted`` is what was learnt.
"""
