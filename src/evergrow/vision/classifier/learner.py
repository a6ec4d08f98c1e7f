"""Training of an image classifier: fit, update, forget and rename classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import GrowingClassifier, check_targets, replace_fitted
from evergrow.foundation.locks import exclusive
from evergrow.foundation.params import Choice, Flag, Nothing, RandomState, Rule
from evergrow.vision.classifier.components import (
    FEATURES,
    IS_FEATURES,
    IS_LEARNER,
    LEARNERS,
    ComponentOptions,
    make_features,
    make_learner,
)
from evergrow.vision.classifier.extraction import (
    check_not_empty,
    extract,
    fit_and_extract,
    labelled_sources,
)
from evergrow.vision.classifier.fitted import FittedImages, ImageReport
from evergrow.vision.images.parameters import JOBS, ON_ERROR, VERBOSE


class ImageLearner(GrowingClassifier):
    """Training and updates; the subclass adds parameters and predictions."""

    features: Any
    learner: Any
    keep_features: bool
    on_error: Literal["raise", "skip"]
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    verbose: int

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "features": [Choice(tuple(FEATURES)), IS_FEATURES],
        "learner": [Choice(tuple(LEARNERS)), IS_LEARNER],
        "keep_features": [Flag()],
        "on_error": ON_ERROR,
        "n_jobs": JOBS,
        "random_state": [Nothing(), RandomState()],
        "verbose": VERBOSE,
    }
    _fitted: FittedImages

    @exclusive
    def fit(self, images: Any, y: npt.ArrayLike | None = None) -> Self:
        """Train on images and their classes; earlier training is discarded.

        Parameters
        ----------
        images : list of images, or path
            Paths, bytes, binary files, Pillow images or arrays; or, without ``y``, one folder with
            one subfolder per class.
        y : array-like of shape (n_images,), default=None
            Classes: integers or strings.

        Returns
        -------
        self : estimator
            The fitted estimator. If training fails or is interrupted, it is unchanged.

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
        features = make_features(self.features, options, self.learner)
        found = fit_and_extract(features, sources, labels, self.on_error)
        check_not_empty(found.kept, sources)
        middle = perf_counter()
        learner, y = make_learner(self.learner, options, features), labels[found.kept]
        keep = bool(self.keep_features)
        fitted = FittedImages.train(features, learner, found.features, y, keep=keep)
        seconds = (middle - start, perf_counter() - middle)
        report = ImageReport(len(found.kept), *seconds, (*problems, *found.problems))
        self._take(replace(fitted, report=report))
        return self

    @exclusive
    def partial_fit(self, images: Any, y: npt.ArrayLike | None = None) -> Self:
        """Add images of known and new classes.

        Features are not updated: the visual words of ``"sift"``, ``"hsl"`` and ``"haar"`` are those
        of the first images. If later classes look very different, call :meth:`fit` again.

        Parameters
        ----------
        images : list of images, or path
            As in :meth:`fit`.
        y : array-like of shape (n_images,), default=None
            Classes, of the same type (integers or strings) as the known ones.

        Returns
        -------
        self : estimator
            The updated estimator. If the update fails or is interrupted, it is unchanged.

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
            return self.fit(images, y)
        self._check_parameters()
        known = self._fitted
        given = labelled_sources(images, y, self.on_error, known.labels)
        sources, labels, problems = given
        check_targets(labels)
        # Labels of another type are an error: raised before minutes of extraction.
        known.labels.extend(labels)
        start = perf_counter()
        found = extract(self._usable_features(), sources, self.on_error)
        check_not_empty(found.kept, sources)
        middle = perf_counter()
        prepare = partial(self._with_options, self.learner)
        updated = known.update(found.features, labels[found.kept], prepare)
        seconds = (middle - start, perf_counter() - middle)
        report = ImageReport(len(found.kept), *seconds, (*problems, *found.problems))
        self._take(replace(updated, report=report))
        return self

    @exclusive
    def forget(self, *, classes: npt.ArrayLike) -> Self:
        """Remove classes, as if their images had never been learnt.

        Features are not updated: visual words may come from images of these classes.

        Parameters
        ----------
        classes : array-like
            Classes to forget; the remaining columns keep their order.

        Returns
        -------
        self : estimator
            The estimator; unchanged if anything fails.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 120, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model.fit(images, ["night", "dawn", "day"]).forget(classes=["dawn"]).classes_
        array(['day', 'night'], dtype='<U5')
        """
        self._take(self._require_fitted("classes to forget").forget(classes))
        return self

    @exclusive
    def rename_classes(self, names: Mapping[Any, Any]) -> Self:
        """Rename classes; classes that get the same name are merged.

        Parameters
        ----------
        names : mapping
            From old to new names. A merged class takes the first of their columns.

        Returns
        -------
        self : estimator
            The estimator; unchanged if anything fails.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 120, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model.fit(images, ["night", "dawn", "day"]).rename_classes({"dawn": "day"}).classes_
        array(['day', 'night'], dtype='<U5')
        """
        self._take(self._require_fitted("classes to rename").rename(names))
        return self

    def _take(self, fitted: FittedImages) -> None:
        replace_fitted(self, {"_fitted": fitted})

    def _usable_features(self) -> Any:
        """The fitted features, with the current number of threads and progress bars."""
        return self._with_options(self.features, self._require_fitted("features").features)

    def _with_options(self, parameter: Any, estimator: Any) -> Any:
        # A custom component has options of its own.
        return self._options().apply_to(estimator) if isinstance(parameter, str) else estimator

    def _options(self, seed: int = 0) -> ComponentOptions:
        return ComponentOptions(self.n_jobs, seed, int(self.verbose))
