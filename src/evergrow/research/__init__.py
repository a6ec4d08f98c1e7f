"""Data sets, the class-incremental protocol, the experiments of the papers, comparisons.

``datasets`` reads, downloads and generates data sets. ``streams`` is the protocol as data: which
classes arrive when, learners on a stream, and what is measured. ``peers`` has the analytic heads of
the field, to compare with. ``experiments`` is the frame of an experiment: its data, runs, table,
figure, verdict and page. ``papers`` has one module per table or figure of the five papers, and of
our own guide. ``comparison`` measures many learners on a user's features and recommends one.

A data set goes in, tables and figures come out. Start reading with ``streams.stream``, then with a
short experiment such as ``papers.cvpr2014.fig8``.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
