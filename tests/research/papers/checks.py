"""What the tests of all papers check: interrupted runs, users' own files, words in figures."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from evergrow.research import run_experiment


class StoppedError(Exception):
    """Stands for a kill in the middle of an experiment."""


def save_features(path, data):
    """Write a data set as a user's own .npz file."""
    np.savez(
        path,
        X_train=data.X_train,
        y_train=data.y_train,
        X_test=data.X_test,
        y_test=data.y_test,
    )
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
