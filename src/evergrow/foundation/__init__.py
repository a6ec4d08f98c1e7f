"""What everything else stands on: errors, parameter checks, labels, locks and the engine.

Nothing here imports another room. ``errors`` has all that Evergrow raises and warns of, ``params``
the declared parameters of estimators and their checks, ``labels`` the list of classes that grows
across calls. ``engine`` is where long work runs: a plain loop here, Ray in
:mod:`evergrow.distributed`. ``files`` opens regular files and replaces them whole or not at all,
``locks`` order writers. ``threads`` limits the threads of numerical libraries, ``device`` finds a
GPU, ``rows`` cuts matrices, ``lapack`` solves. ``formatting`` writes counts, times, sizes and the
names of sources, ``progress`` shows progress bars, ``public_names`` imports what packages name when
it is first used, and ``extras`` has the installed version and how to install what is missing.

Start reading with ``params`` and ``labels``: every estimator begins there.
"""
