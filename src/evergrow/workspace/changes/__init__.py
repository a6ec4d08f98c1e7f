"""All changes of a workspace, each a function within one database transaction.

``teach`` adds examples; ``examples``, ``classes`` and ``undo`` change them. A change writes its
event and its moves within a ``transaction``; ``writer`` commits it and publishes its domain events.
"""
