"""Compare incremental learners on a user's features and recommend one.

``compare`` trains each learner of ``learners`` on the stream that ``setup`` chooses.
``measurement`` runs one learner and returns a ``Result``; a ``Standing`` summarises a learner over
all class orders. ``recommendation`` turns standings into advice. ``table``, ``charts`` and ``page``
present them, and ``files`` writes the page, the CSV table and the JSON record. Start reading with
``comparison``.
"""
