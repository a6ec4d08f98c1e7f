"""What everything else stands on: errors, parameter checks, labels, locks and the engine.

Nothing here knows of estimators, model files or images, and nothing here imports another room.
``errors`` has all that Evergrow raises and warns of, ``params`` the declared parameters of
estimators and their checks, ``labels`` the list of classes that grows across calls. ``engine`` is
where long work runs: a plain loop here, Ray in :mod:`evergrow.distributed`. ``atomic`` replaces
files whole or not at all, ``locks`` order writers, ``threads`` limits the threads of
numerical libraries, ``blocks`` and ``ragged`` cut matrices.

Start reading with ``params`` and ``labels``: every estimator begins there.
"""
