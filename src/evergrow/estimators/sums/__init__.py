"""Sums over weighted examples, and what learns from nothing else.

``moments`` are the immutable sums; ``accumulation`` adds examples to them, ``changes`` removes them
again, ``holdout`` keeps every n-th example for validation. ``learner`` is the base class of least
squares and class means. Start reading with ``moments``.
"""
