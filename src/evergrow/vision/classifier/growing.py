"""Training a classifier of images: from scratch, with more images, and without old classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import GrowingClassifier, check_targets, swap_learnt
from evergrow.foundation.params import Choice, Flag, Integer, Nothing, RandomState, Rule
from evergrow.foundation.turns import one_at_a_time
from evergrow.vision.classifier.choices import (
    FEATURES,
    LEARNERS,
    IsFeatures,
    IsLearner,
    Options,
    new_features,
    new_learner,
)
from evergrow.vision.classifier.extracting import (
    check_some,
    extract,
    fit_and_extract,
    labelled_sources,
)
from evergrow.vision.classifier.fitted import FittedImages
from evergrow.vision.classifier.report import ImageReport

__all__ = ["ON_ERROR", "GrowingImages"]

ON_ERROR: list[Rule] = [Choice(("raise", "skip"))]


class GrowingImages(GrowingClassifier):
    """Training and updating; the subclass adds parameters and answers."""

    features: Any
    learner: Any
    keep_features: bool
    on_error: Literal["raise", "skip"]
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    verbose: int

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "features": [Choice(tuple(FEATURES)), IsFeatures()],
        "learner": [Choice(tuple(LEARNERS)), IsLearner()],
        "keep_features": [Flag()],
        "on_error": ON_ERROR,
        "n_jobs": [Nothing(), Integer(-(1 << 16), -1), Integer(1, 1 << 16)],
        "random_state": [Nothing(), RandomState()],
        "verbose": [Integer(0), Flag()],
    }
    _fitted: FittedImages

    @one_at_a_time
    def fit(self, images: Any, y: npt.ArrayLike | None = None) -> Self:
        """Train on images and their classes, forgetting whatever was learnt before.

        Parameters
        ----------
        images : list of images, or path
            Paths, bytes, binary files, Pillow images or arrays; or, without ``y``, one folder that
            holds a folder per class.
        y : array-like of shape (n_images,), default=None
            Classes: integers or strings.

        Returns
        -------
        self : estimator
            The fitted estimator. If training fails or is interrupted it stays as it was.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 10, 240, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model.fit(images, ["night", "night", "day", "day"]).class_counts_
        array([2, 2])
        """
        self._check_parameters()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        options = self._options(seed)
        sources, labels, problems = labelled_sources(images, y, self.on_error)
        check_targets(labels)
        start = perf_counter()
        features = new_features(self.features, options)
        found = fit_and_extract(features, sources, labels, self.on_error)
        check_some(found.kept, sources)
        middle = perf_counter()
        learner = new_learner(self.learner, options)
        lesson = (found.features, labels[found.kept])
        fitted = FittedImages.first(features, learner, lesson, keep=bool(self.keep_features))
        seconds = (middle - start, perf_counter() - middle)
        report = ImageReport(len(found.kept), *seconds, (*problems, *found.problems))
        self._take(replace(fitted, report=report))
        return self

    @one_at_a_time
    def partial_fit(self, images: Any, y: npt.ArrayLike | None = None) -> Self:
        """Add images, of known classes and of new ones.

        Features stay as they were: the visual words of ``"sift"``, ``"hsl"`` and ``"haar"`` are
        those of the first images. If later classes look quite different, train anew.

        Parameters
        ----------
        images : list of images, or path
            As in :meth:`fit`.
        y : array-like of shape (n_images,), default=None
            Classes, of the same kind (numbers or strings) as the known ones.

        Returns
        -------
        self : estimator
            The updated estimator. If the update fails or is interrupted it stays as it was.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 120, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model = model.fit(images[:2], ["night", "dawn"])
        >>> model.partial_fit(images[2:], ["day"]).classes_
        array(['dawn', 'night', 'day'], dtype='<U5')
        """
        if not self.__sklearn_is_fitted__():
            fitted: Self = self.fit(images, y)
            return fitted
        self._check_parameters()
        known = self._fitted
        given = labelled_sources(images, y, self.on_error, known.labels)
        sources, labels, problems = given
        check_targets(labels)
        # Before minutes of extraction, as labels of another kind are an error anyway.
        known.labels.extend(labels)
        start = perf_counter()
        found = extract(self._usable_features(), sources, self.on_error)
        check_some(found.kept, sources)
        middle = perf_counter()
        matrix = found.features
        grown = known.taught(matrix, labels[found.kept], partial(self._settled, self.learner))
        seconds = (middle - start, perf_counter() - middle)
        report = ImageReport(len(found.kept), *seconds, (*problems, *found.problems))
        self._take(replace(grown, report=report))
        return self

    @one_at_a_time
    def forget(self, *, classes: npt.ArrayLike) -> Self:
        """Take classes out of the model, as if their images had never come.

        Features stay as they were: visual words may come from forgotten images.

        Parameters
        ----------
        classes : array-like
            Classes to forget; the other columns keep their order.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 120, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model.fit(images, ["night", "dawn", "day"]).forget(classes=["dawn"]).classes_
        array(['day', 'night'], dtype='<U5')
        """
        self._take(self._learnt("classes to forget").without(classes))
        return self

    @one_at_a_time
    def rename_classes(self, names: Mapping[Any, Any]) -> Self:
        """Give classes other names; classes that get one name become one class.

        Parameters
        ----------
        names : mapping
            From old to new names. The joint class has the first of their columns.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 120, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model.fit(images, ["night", "dawn", "day"]).rename_classes({"dawn": "day"}).classes_
        array(['day', 'night'], dtype='<U5')
        """
        self._take(self._learnt("classes to rename").renamed(names))
        return self

    def _take(self, fitted: FittedImages) -> None:
        swap_learnt(self, {"_fitted": fitted})

    def _usable_features(self) -> Any:
        """The fitted features, with the threads and progress bars that are wanted now."""
        return self._settled(self.features, self._learnt("features").features)

    def _settled(self, choice: Any, estimator: Any) -> Any:
        # What is no name has options of its own.
        return self._options().settle(estimator) if isinstance(choice, str) else estimator

    def _options(self, seed: int = 0) -> Options:
        return Options(self.n_jobs, seed, int(self.verbose))
