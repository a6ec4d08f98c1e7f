"""The frame of an experiment: data, runs, table, figure, verdicts and page.

An :class:`Experiment` is a frozen value: which runs to measure, how to measure one, how to draw
the table of all rows and how to judge the claims of the paper. :func:`run_experiment` does the
runs that are not in the cache yet and writes the CSV files, the figure and the page;
:func:`render_experiment` writes figure and page again from the CSV files. Both judge the numbers as
``stored`` has them. ``wording`` says columns and values in words, and ``terms`` explains words.
:class:`ExperimentContext` says on which data and at which size. The experiments themselves are in
``evergrow.research.papers``; ``catalogue`` finds them by name.

Start reading with ``experiment``, then ``runner``. A new experiment mostly needs ``Table`` and the
functions of ``verdicts``, which tell a difference from noise. Experiments import this package as
``ex`` and write ``ex.Table`` or ``ex.compare_means``, whichever module defines the name.
"""

from evergrow.research.experiments.catalogue import PAPERS, experiment_names, find_experiments
from evergrow.research.experiments.context import ExperimentContext, time_call
from evergrow.research.experiments.environment import describe_environment
from evergrow.research.experiments.experiment import Experiment, Finding, Run, Source, Verdict
from evergrow.research.experiments.plots import (
    BLACK,
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    MARKERS,
    ORANGE,
    PINK,
    RED,
    SKY,
    Axes,
    Figure,
    add_legend,
    plot_band,
    set_log_ticks,
)
from evergrow.research.experiments.runner import Outcome, render_experiment, run_experiment
from evergrow.research.experiments.table import Curve, Row, Table
from evergrow.research.experiments.verdicts import (
    Claim,
    Difference,
    Seen,
    combine_verdicts,
    compare_each_seed,
    compare_extremes,
    compare_means,
    compare_ratios,
    compare_seeds,
    compare_values,
    findings_by_data,
    format_mean,
    format_percent,
    is_best,
    is_increasing,
    name_repeated,
)
from evergrow.research.experiments.wording import say_signed, say_value

__all__ = [
    "BLACK",
    "BLUE",
    "COLOURS",
    "GREEN",
    "GREY",
    "MARKERS",
    "ORANGE",
    "PAPERS",
    "PINK",
    "RED",
    "SKY",
    "Axes",
    "Claim",
    "Curve",
    "Difference",
    "Experiment",
    "ExperimentContext",
    "Figure",
    "Finding",
    "Outcome",
    "Row",
    "Run",
    "Seen",
    "Source",
    "Table",
    "Verdict",
    "add_legend",
    "combine_verdicts",
    "compare_each_seed",
    "compare_extremes",
    "compare_means",
    "compare_ratios",
    "compare_seeds",
    "compare_values",
    "describe_environment",
    "experiment_names",
    "find_experiments",
    "findings_by_data",
    "format_mean",
    "format_percent",
    "is_best",
    "is_increasing",
    "name_repeated",
    "plot_band",
    "render_experiment",
    "run_experiment",
    "say_signed",
    "say_value",
    "set_log_ticks",
    "time_call",
]
