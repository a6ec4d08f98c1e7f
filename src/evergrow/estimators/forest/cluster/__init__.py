"""Trees grown in groups by the workers of an engine.

Modules named ``driver_`` run in the process of the estimator, modules named ``worker_`` in the
workers, and ``node_files`` in both.
"""
