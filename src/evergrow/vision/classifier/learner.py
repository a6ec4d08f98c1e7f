"""Training of an image classifier: fit, update, forget and rename classes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import GrowingClassifier, check_targets, replace_fitted
from evergrow.foundation.errors import BadImage
from evergrow.foundation.formatting import display_name, format_count
from evergrow.foundation.locks import exclusive
from evergrow.foundation.params import (
    Choice,
    Flag,
    Nothing,
    RandomState,
    Rule,
    check_parameters,
)
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
from evergrow.vision.classifier.fingerprints import hash_images
from evergrow.vision.classifier.fitted import FittedImages, ImageReport
from evergrow.vision.images import Extraction
from evergrow.vision.images.parameters import JOBS, ON_ERROR, VERBOSE
from evergrow.vision.images.results import warn_about

# A warning names at most this many images.
_MAX_NAMED = 5


@dataclass(frozen=True)
class _Images:
    """Images to learn with their labels and hashes, and what was left out."""

    sources: list[Any]
    labels: npt.NDArray[Any]
    digests: list[bytes | None]
    problems: tuple[BadImage, ...]
    n_known_images: int = 0

    def without_known(self, known: FittedImages) -> _Images:
        """Without those that were learnt before; a warning names those of other classes."""
        classes, codes = known.labels.extend(self.labels)
        found = known.fingerprints.find_known(self.digests, codes)
        names = classes.classes.tolist()
        elsewhere = [
            BadImage(
                place,
                display_name(self.sources[place]),
                f"the class {names[column]!r} has it already, so {names[codes[place]]!r} does not "
                "get it",
            )
            for place, column in found.elsewhere
        ]
        warn_about(elsewhere)
        new = self._select(found.new)
        return replace(new, problems=(*self.problems, *elsewhere), n_known_images=found.n_same)

    def readable(self, found: Extraction) -> _Images:
        """Those that have features."""
        left = self._select(found.kept.tolist())
        return replace(left, problems=(*self.problems, *found.problems))

    def warn_about_contradictions(self) -> None:
        """Name images that are given in more than one class, and are learnt in each."""
        first: dict[bytes, int] = {}
        found = []
        labels = self.labels.tolist()
        for place, digest in enumerate(self.digests):
            other = place if digest is None else first.setdefault(digest, place)
            if labels[other] != labels[place]:
                same = display_name(self.sources[other])
                found.append(f"{display_name(self.sources[place])} is the same as {same}")
        if found:
            listed = "; ".join(found[:_MAX_NAMED]) + ("; ..." if len(found) > _MAX_NAMED else "")
            images = format_count(len(found), "image")
            text = f"{images} learnt in two classes, which makes the model worse: {listed}"
            warnings.warn(text, UserWarning, stacklevel=3)

    def report(self, seconds_features: float, seconds_learning: float) -> ImageReport:
        """The report after these images were learnt."""
        seconds = (seconds_features, seconds_learning)
        known, copies = self.n_known_images, self._count_copies()
        return ImageReport(len(self.sources), *seconds, self.problems, known, copies)

    def _count_copies(self) -> int:
        """How many are the same as others of their class."""
        pairs = zip(self.digests, self.labels.tolist(), strict=True)
        hashed = [pair for pair in pairs if pair[0] is not None]
        return len(hashed) - len(set(hashed))

    def _select(self, places: list[int]) -> _Images:
        return replace(
            self,
            sources=[self.sources[place] for place in places],
            labels=self.labels[places],
            digests=[self.digests[place] for place in places],
        )


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
    _kind = FittedImages

    @exclusive
    def fit(self, images: Any, y: npt.ArrayLike | None = None) -> Self:
        """Train on images and their classes, replacing everything learnt before.

        Parameters
        ----------
        images : list of images, path or LabelledImages
            With `y`, a list of paths, bytes, binary files, Pillow images or arrays. Without `y`,
            the path of a folder with one subfolder per class, or of another source that
            :func:`~evergrow.vision.find_labelled` reads: a table, COCO annotations or tar files.
            The result of that function works too.
        y : array-like of shape (n_images,), default=None
            Classes: integers or strings. None if `images` includes them.

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
        given = _Images(sources, labels, hash_images(sources, self.n_jobs), problems)
        given = given.readable(found)
        given.warn_about_contradictions()
        middle = perf_counter()
        learner = make_learner(self.learner, options, features)
        keep = bool(self.keep_features)
        fitted = FittedImages.train(
            features, learner, found.features, given.labels, given.digests, keep=keep
        )
        seconds = (middle - start, perf_counter() - middle)
        self._set_fitted(replace(fitted, report=given.report(*seconds)))
        return self

    @exclusive
    def partial_fit(
        self, images: Any, y: npt.ArrayLike | None = None, *, skip_known: bool = False
    ) -> Self:
        """Add images of known and new classes.

        The first call on a new estimator is the same as :meth:`fit`. An image that was learnt
        before then counts twice, unless `skip_known` is True.

        Features are not updated: the visual words of ``"sift"``, ``"hsl"`` and ``"haar"`` are those
        of the first images. If later classes look very different, call :meth:`fit` again.

        Parameters
        ----------
        images : list of images, path or LabelledImages
            Images, as in :meth:`fit`.
        y : array-like of shape (n_images,), default=None
            Classes, of the same type (integers or strings) as the known ones. None if `images`
            includes them.
        skip_known : bool, default=False
            Whether to skip images that were learnt before. Only files and bytes are compared, by
            their content. ``report_`` counts skipped images. An image that was learnt in another
            class is skipped too, with a warning.

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
        check_parameters({"skip_known": skip_known}, {"skip_known": [Flag()]})
        known = self._fitted
        sources, labels, problems = labelled_sources(images, y, self.on_error, known.labels)
        check_targets(labels)
        # Labels of another type are an error: raised before minutes of extraction.
        known.labels.extend(labels)
        start = perf_counter()
        given = _Images(sources, labels, hash_images(sources, self.n_jobs), problems)
        given = given.without_known(known) if skip_known else given
        updated, middle = known, start
        if given.sources:
            found = extract(self._usable_features(), given.sources, self.on_error)
            # If some are known, it is not an error that no other can be read.
            if len(given.sources) == len(sources):
                check_not_empty(found.kept, sources)
            given, middle = given.readable(found), perf_counter()
        if given.sources:
            given.warn_about_contradictions()
            prepare = partial(self._with_options, self.learner)
            updated = known.update(found.features, given.labels, given.digests, prepare)
        seconds = (middle - start, perf_counter() - middle)
        self._set_fitted(replace(updated, report=given.report(*seconds)))
        return self

    @exclusive
    def forget(self, *, classes: npt.ArrayLike) -> Self:
        """Remove classes, as if their images had never been learnt.

        The other classes keep the order of their columns. Features are not updated: visual words
        that were learnt from images of these classes stay.

        Parameters
        ----------
        classes : array-like
            Classes to remove.

        Returns
        -------
        self : estimator
            The estimator; unchanged if an error is raised.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 120, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model.fit(images, ["night", "dawn", "day"]).forget(classes=["dawn"]).classes_
        array(['day', 'night'], dtype='<U5')
        """
        self._set_fitted(self._require_fitted("classes to forget").forget(classes))
        return self

    @exclusive
    def rename_classes(self, names: Mapping[Any, Any]) -> Self:
        """Rename classes; classes that get the same name are merged.

        Parameters
        ----------
        names : mapping
            Old name to new name, of the same kind (numbers or strings). Classes that get the same
            name, or the name of an existing class, are merged into the first of their columns.

        Returns
        -------
        self : estimator
            The estimator; unchanged if an error is raised.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 120, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model.fit(images, ["night", "dawn", "day"]).rename_classes({"dawn": "day"}).classes_
        array(['day', 'night'], dtype='<U5')
        """
        self._set_fitted(self._require_fitted("classes to rename").rename(names))
        return self

    def _set_fitted(self, fitted: FittedImages, *_: Any) -> None:  # type: ignore[override]
        replace_fitted(self, {"_fitted": fitted})

    def _usable_features(self) -> Any:
        """The fitted features, with the current number of threads and progress bars."""
        return self._with_options(self.features, self._require_fitted("features").features)

    def _with_options(self, parameter: Any, estimator: Any) -> Any:
        # A custom component has options of its own.
        return self._options().apply_to(estimator) if isinstance(parameter, str) else estimator

    def _options(self, seed: int = 0) -> ComponentOptions:
        return ComponentOptions(self.n_jobs, seed, int(self.verbose))


def count_learnt(model: ImageLearner, sources: Sequence[Any]) -> int:
    """How many of these images the model has learnt; 0 if its file is too old to say."""
    return model._fitted.fingerprints.count_known(hash_images(sources, model.n_jobs))
