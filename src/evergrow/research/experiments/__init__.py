"""The frame of an experiment: data, runs, table, figure, verdicts and page.

An :class:`Experiment` is a frozen value: which runs to measure, how to measure one, how to draw
the table of all rows and how to judge the claims of the paper. :func:`run_experiment` does the
runs that are not in the cache yet and writes the CSV files, the figure and the page.
:class:`ExperimentContext` says on which data and at which size. The experiments themselves are in
``evergrow.research.papers``; ``catalogue`` finds them by name.

Start reading with ``experiment``, then ``runner``. A new experiment mostly needs ``Table`` and the
functions of ``verdicts``, which tell a difference from noise.
"""

from evergrow.research.experiments.catalogue import PAPERS, experiment_names, find_experiments
from evergrow.research.experiments.context import ExperimentContext
from evergrow.research.experiments.environment import describe_environment
from evergrow.research.experiments.experiment import Experiment, Finding, Run, Source
from evergrow.research.experiments.runner import Outcome, run_experiment
from evergrow.research.experiments.table import Curve, Row, Table

__all__ = [
    "PAPERS",
    "Curve",
    "Experiment",
    "ExperimentContext",
    "Finding",
    "Outcome",
    "Row",
    "Run",
    "Source",
    "Table",
    "describe_environment",
    "experiment_names",
    "find_experiments",
    "run_experiment",
]
