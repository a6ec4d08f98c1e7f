"""A folder that stores every example it was taught, and a model that learns from them.

Examples are rows of a SQLite database; embeddings and images are files next to it (``store``). The
workspace is event-sourced: a change (``changes``) appends an event to the log and moves examples in
one transaction, and then publishes domain events (``events``) to a projection: the ``model``. It
applies events live, or replays them after a crash, and predicts from an immutable snapshot.
``check`` verifies every hash and count, repairs what it can, and makes backups; ``archive`` writes
the pictures to class folders that other software reads.

New examples and requests go in; predictions, records and pages of them come out. Start reading with
``workspace`` and ``reader``, the facade; then ``events``, and ``changes/writer``, where a change
becomes durable.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
