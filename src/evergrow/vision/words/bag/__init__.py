"""Bags of words: the words of an image, counted and pooled into one vector.

Start with ``bag_of_words``. ``training_set`` draws descriptors, ``fitted`` is what was learnt.
"""
