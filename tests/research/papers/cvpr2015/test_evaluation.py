"""Learners are trained on a draw and evaluated on the test samples."""

import numpy as np
import pytest

from evergrow.research.papers.cvpr2015.evaluation import METRIC_PARTS, apply_metric, evaluate
from evergrow.research.papers.cvpr2015.learners import LABELS, LEARNERS
from evergrow.research.papers.cvpr2015.levels import draw


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_learns_more_than_chance(data, name):
    shown = draw(data, 0, 0.5, 0.5)
    values = evaluate(name, shown, data, n_trees=3, seed=0, n_jobs=1)
    assert values["coarse_accuracy"] > 0.5
    assert values.get("accuracy", 1.0) > 0.3


def test_every_learner_has_a_name_in_pictures():
    assert set(LABELS) == set(LEARNERS)


def test_parameters_reach_the_estimator(data):
    shown = draw(data, 0, 0.5, 0.5)
    shallow, deep = (
        evaluate(
            "full", shown, data, n_trees=3, seed=0, n_jobs=1, parameters={"min_samples_leaf": n}
        )
        for n in (60, 5)
    )
    assert shallow["comparisons"] < deep["comparisons"]


@pytest.mark.parametrize("part", METRIC_PARTS)
def test_training_and_test_samples_are_seen_through_the_same_metric(data, part):
    shown = draw(data, 0, 0.5, 0.5)
    seen, test = apply_metric(part, shown, data, 0)
    # The projection is linear: it is known from the training samples.
    projection = np.linalg.lstsq(shown.X, seen.X, rcond=None)[0]
    assert np.allclose(test.X_test, data.X_test @ projection, atol=1e-3)
    assert (seen.labels == shown.labels).all()


def test_a_metric_may_have_low_rank(data):
    shown = draw(data, 0, 0.5, 0.5)
    seen, test = apply_metric("fine", shown, data, 0, rank=3)
    assert seen.X.shape[1] == test.X_test.shape[1] == 3


def test_without_a_metric_samples_stay_as_they_are(data):
    shown = draw(data, 0, 0.5, 0.5)
    assert apply_metric("none", shown, data, 0) == (shown, data)
