"""The experiments of the five papers: one module per table or figure."""

from evergrow.experiments.catalogue import PAPERS, experiment_names, find_experiments
from evergrow.experiments.experiment import Experiment, Finding, Source
from evergrow.experiments.lab import Lab
from evergrow.experiments.record import surroundings
from evergrow.experiments.running import Outcome, perform
from evergrow.experiments.table import Curve, Table

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
