"""The experiments of the five papers: one module per table or figure."""

from evergrow.research.experiments.catalogue import PAPERS, experiment_names, find_experiments
from evergrow.research.experiments.experiment import Experiment, Finding, Source
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.record import surroundings
from evergrow.research.experiments.running import Outcome, perform
from evergrow.research.experiments.table import Curve, Table

__all__ = [
    "PAPERS",
    "Curve",
    "Experiment",
    "Finding",
    "Lab",
    "Outcome",
    "Source",
    "Table",
    "experiment_names",
    "find_experiments",
    "perform",
    "surroundings",
]
