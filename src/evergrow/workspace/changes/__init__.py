"""All changes of a workspace, each a function within one database transaction.

``teach`` adds examples; ``relabel``, ``forget``, ``classes`` and ``undo`` change them. A change
writes its event and its ``moves``; ``writer`` commits it and publishes its domain events.
"""
