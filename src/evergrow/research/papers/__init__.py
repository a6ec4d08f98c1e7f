"""The experiments of the five papers and of our own guide: one module per table or figure.

Each module has the functions ``runs``, ``measure``, ``draw`` and ``judge``, and the value
``EXPERIMENT``, which also says what differs from the paper. What the modules of one paper share has
the same name in every paper: ``protocol`` or ``data`` is what is measured on, ``learners`` or
``baselines`` are the classifiers, ``plots`` draws and ``claims`` judges. A new experiment is a new
module and its name in ``evergrow.research.experiments.catalogue``.

Start reading with ``cvpr2014.fig8``, then ``cvpr2014.protocol``.
"""
