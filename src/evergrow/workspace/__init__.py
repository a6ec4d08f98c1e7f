"""A folder that remembers every example it was taught, and a model that follows it.

Examples are rows of a SQLite database, with their embeddings in shards and their pictures in files.
A change is planned (``teaching``, ``editing``, ``moving``), written in one transaction, and then
reported as events to followers (``following``). The model in ``model`` and ``learning`` is such a
follower: it learns live, or catches up after a crash. ``checking`` compares every hash and count,
``backing_up`` copies a workspace while it runs, ``migrations`` reads older formats.

Lessons and questions come in, answers and records go out. Start reading with ``workspace``, then
``following``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
