"""What the tests of all papers check: verdicts, interrupted runs, words in figures."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from evergrow.research import Table, find_experiments, run_experiment


class StoppedError(Exception):
    """Stands for a kill in the middle of an experiment."""


def save_features(path, data):
    """Write a data set as a user's own .npz file."""
    names = ("X_train", "y_train", "X_test", "y_test")
    np.savez(path, **{name: getattr(data, name) for name in names})
    return path


def svg_words(path):
    return {element.text for element in ElementTree.parse(path).iter() if element.text}


def check_resuming(experiment, folder, make_context, n_done):
    """An experiment that is stopped after some runs is resumed and writes the same table."""
    n_left = n_done

    def measure(context, run):
        nonlocal n_left
        if not n_left:
            raise StoppedError
        n_left -= 1
        return experiment.measure(context, run)

    stopped, whole = folder / "stopped", folder / "whole"
    with pytest.raises(StoppedError):
        run_experiment(replace(experiment, measure=measure), stopped, make_context())
    resumed = run_experiment(experiment, stopped, make_context())
    uninterrupted = run_experiment(experiment, whole, make_context())
    assert resumed.n_measured == uninterrupted.n_measured - n_done
    name = f"{experiment.name}.csv"
    assert (stopped / name).read_bytes() == (whole / name).read_bytes()


def find(name):
    """The experiment of this name."""
    (experiment,) = find_experiments([name])
    return experiment


def verdict(name, table, start):
    """The verdict of an experiment on the claim that starts like this."""
    (finding,) = [f for f in find(name).judge(Table(table)) if f.claim.startswith(start)]
    return finding.agrees


SIGNS = {True: "+", False: "-", None: "?"}


def check_verdicts(experiment, rows, expected):
    """Compare the verdicts on these rows with one sign per claim; a dot is for any of them."""
    found = "".join(SIGNS[finding.agrees] for finding in experiment.judge(Table(rows)))
    shown = "".join("." if sign == "." else f for sign, f in zip(expected, found, strict=True))
    assert shown == expected, found
