"""What everything else stands on: errors, parameter checks, labels, locks and the engine.

Nothing here imports another room. ``errors`` has all that Evergrow raises and warns of, ``params``
the declared parameters of estimators and their checks, ``labels`` the list of classes that grows
across calls. ``engine`` is where long work runs: a plain loop here, Ray in
:mod:`evergrow.distributed`. ``atomic`` replaces files whole or not at all, ``regular_files`` opens
them, ``locks`` order writers. ``threads`` limits the threads of numerical libraries, ``device``
finds a GPU, ``rows`` and ``ragged`` cut matrices, ``arrays`` has their types. ``naming`` names
sources in messages, ``formatting`` writes counts, times and sizes, ``progress`` shows progress
bars, ``public_names`` imports what packages name when it is first used, and ``version`` is that of
the package.

Start reading with ``params`` and ``labels``: every estimator begins there.
"""
