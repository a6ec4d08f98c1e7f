"""Learners side by side on streams in which classes arrive a few at a time.

``data`` reads features, shards and folders of photographs. ``stream`` has the protocol and trains a
learner on it. ``comparison`` measures the ``learners`` on a user's data and writes a table, a
record and a ``page``; ``recommendation`` names the learner that serves each need best. Start
reading with ``comparison``.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
