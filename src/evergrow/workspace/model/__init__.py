"""The model of a workspace: a projection of its event log that answers from snapshots.

``projection`` applies events to the state; ``snapshot`` is the immutable value that predicts.
``least_squares``, ``forest`` and ``fine_classes`` are trained, ``evaluation`` assesses them by
leave-one-out, and ``snapshot_files`` saves the state so that opening has less to replay.
"""
