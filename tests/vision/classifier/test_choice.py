"""The choice of a learner: accuracy on images that it was not trained on."""

import numpy as np
import pytest

from evergrow.vision.classifier import choice
from evergrow.vision.classifier.choice import LearnerChoice, choose_learner
from tests.vision.classifier.pictures import folder_of

OPTIONS = {"on_error": "raise", "n_jobs": 1, "seed": 0, "verbose": 0}


def test_each_image_is_tested_once_by_a_model_that_has_not_seen_it():
    y = np.array(["a"] * 7 + ["b"] * 3 + ["alone"])
    folds = choice._assign_folds(y, 0)
    seen = []

    class Recorder:
        def fit(self, X, y):
            self.known = set(X[:, 0].tolist())
            assert {"a", "b", "alone"} == set(y)

        def predict(self, X):
            asked = set(X[:, 0].tolist())
            assert not asked & self.known
            seen.extend(asked)
            return np.full(len(X), "a")

    accuracy = choice._cross_validate(Recorder(), np.arange(11.0)[:, None], y, folds)
    assert sorted(seen) == list(range(10))
    # Every class has the same weight, and the one with a single image is not tested.
    assert accuracy == 0.5


def test_the_most_accurate_learner_is_chosen(tmp_path, monkeypatch):
    photos = folder_of(tmp_path, "red", "green", n=4)
    shares = iter([0.7, 0.9, 0.9, 0.8])
    monkeypatch.setattr(choice, "_cross_validate", lambda *_: next(shares))
    found = choose_learner(photos, "hsl", **OPTIONS)
    assert found.name == "means"
    assert found.accuracies == {"rls": 0.7, "means": 0.9, "lda": 0.9, "forest": 0.8}
    assert found.reason == (
        "Chose 'class means' ('--learner means'): 90.0% mean class accuracy in 5-fold "
        "cross-validation on 8 images ('least squares' 70.0%, 'streaming LDA' 90.0%, 'forest of "
        "class means' 80.0%)."
    )


@pytest.mark.parametrize("n", [1, 2])
def test_single_images_cannot_be_compared(tmp_path, n):
    found = choose_learner(folder_of(tmp_path, "red", "green", n=n), "hsl", **OPTIONS)
    assert bool(found.accuracies) == (n == 2)
    if n == 1:
        assert found == LearnerChoice("rls", {}, 2)
