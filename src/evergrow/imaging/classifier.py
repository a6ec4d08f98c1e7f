"""A classifier of images: features and a learner that grows, in one estimator and one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from evergrow.files import write_model
from evergrow.imaging.answers import Answers, best_classes
from evergrow.imaging.choices import (
    FEATURES,
    LEARNERS,
    IsFeatures,
    IsLearner,
    Options,
    new_features,
    new_learner,
)
from evergrow.imaging.extracting import (
    check_some,
    extract,
    fit_and_extract,
    labelled_sources,
    listed,
)
from evergrow.imaging.fitted import FittedImages
from evergrow.imaging.report import ImageReport
from evergrow.learner import GrowingClassifier, check_targets, swap_learnt
from evergrow.modelfile import Build, common_header, parameters_of, plain_parameters
from evergrow.params import (
    Choice,
    Flag,
    Integer,
    Nothing,
    RandomState,
    Rule,
    check_parameters,
)
from evergrow.turns import one_at_a_time

__all__ = ["ImageClassifier"]

_ON_ERROR: list[Rule] = [Choice(("raise", "skip"))]


class ImageClassifier(GrowingClassifier):
    """A classifier of images that takes new classes and examples at any time.

    Images are turned into numbers by ``features``, and those are learnt by ``learner``. The file of
    a saved model holds both.

    Parameters
    ----------
    features : {"embed", "sift", "hsl", "haar"}, transformer or callable, default="embed"
        How images become numbers: ``"embed"`` by a network trained on photographs
        (:class:`~evergrow.features.Embedder`), the most accurate for photographs of things; the
        others by visual words that :meth:`fit` learns from patches of the training images
        (:class:`~evergrow.codebook.BagOfWords` of an ERC forest), which needs no network and suits
        textures and drawings. Any transformer of a list of images may stand here, a scikit-learn
        pipeline for one, or a function from a list of RGB arrays to a matrix; a model with a
        function cannot be saved.
    learner : {"rls", "forest"} or classifier, default="rls"
        What learns the classes: :class:`RLSClassifier`, which is fast to teach and chooses its
        penalty itself, :class:`NCMForestClassifier`, or any growing classifier of Evergrow's, such
        as a :class:`RejectingClassifier`; it is cloned.
    keep_features : bool, default=True
        Keep the features of the training images, 4 bytes per number, where the learner may need
        them to :meth:`forget` a class; forests keep theirs anyway. Switch it off for a smaller
        model that forgets only what its learner can forget alone.
    on_error : {"raise", "skip"}, default="raise"
        What training does about an image that cannot be read: raise an error, or leave it out and
        warn.
    n_jobs : int, default=None
        Threads, for features and learners made by name: None is 1, -1 all processors. What is
        learnt does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed, for features and learners made by name.
    verbose : int, default=0
        Show progress bars when positive, for features and learners made by name.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    class_counts_ : ndarray of shape (n_classes,)
        Number of images learnt per class.
    features_ : transformer
        The fitted features. They stay as the first :meth:`fit` made them.
    learner_ : classifier
        The fitted learner; do not train it on its own.
    report_ : ImageReport or None
        What the last call that trained took; None if it was another call, or loading.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.imaging import ImageClassifier
    >>> dark, bright = np.zeros((8, 8, 3), np.uint8), np.full((8, 8, 3), 255, np.uint8)
    >>> model = ImageClassifier(lambda images: [image.mean(axis=(0, 1)) for image in images])
    >>> model = model.fit([dark, bright], ["night", "day"])
    >>> red = np.zeros((8, 8, 3), np.uint8) + np.array([255, 0, 0], np.uint8)
    >>> model.partial_fit([red], ["sunset"]).predict([bright, red])
    array(['day', 'sunset'], dtype='<U6')
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "features": [Choice(tuple(FEATURES)), IsFeatures()],
        "learner": [Choice(tuple(LEARNERS)), IsLearner()],
        "keep_features": [Flag()],
        "on_error": _ON_ERROR,
        "n_jobs": [Nothing(), Integer(-(1 << 16), -1), Integer(1, 1 << 16)],
        "random_state": [Nothing(), RandomState()],
        "verbose": [Integer(0), Flag()],
    }
    _fitted: FittedImages

    def __init__(
        self,
        features: Literal["embed", "sift", "hsl", "haar"] | Callable[..., Any] | Any = "embed",
        learner: Literal["rls", "forest"] | Any = "rls",
        *,
        keep_features: bool = True,
        on_error: Literal["raise", "skip"] = "raise",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.learner = learner
        self.keep_features = keep_features
        self.on_error = on_error
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def features_(self) -> Any:
        """The fitted features."""
        return self._learnt("features_").features

    @property
    def learner_(self) -> Any:
        """The fitted learner; do not train it on its own."""
        return self._learnt("learner_").learner

    @property
    def class_counts_(self) -> npt.NDArray[np.int64]:
        """Number of images learnt per class."""
        counts: npt.NDArray[np.int64] = self._learnt("class_counts_").counts
        return counts.copy()

    @property
    def report_(self) -> ImageReport | None:
        """What the last call that trained took."""
        report: ImageReport | None = self._learnt("report_").report
        return report

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
        >>> from evergrow.imaging import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 10, 240, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model.fit(images, ["night", "night", "day", "day"]).class_counts_
        array([2, 2])
        """
        self._check_parameters()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        options = Options(self.n_jobs, seed, int(self.verbose))
        sources, labels, problems = labelled_sources(images, y)
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
        >>> from evergrow.imaging import ImageClassifier
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
        sources, labels, problems = labelled_sources(images, y)
        check_targets(labels)
        # Before minutes of extraction, as labels of another kind are an error anyway.
        known.labels.extend(labels)
        start = perf_counter()
        found = extract(self._usable_features(), sources, self.on_error)
        check_some(found.kept, sources)
        middle = perf_counter()
        grown = known.taught(found.features, labels[found.kept])
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
        >>> from evergrow.imaging import ImageClassifier
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
        >>> from evergrow.imaging import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 120, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model.fit(images, ["night", "dawn", "day"]).rename_classes({"dawn": "day"}).classes_
        array(['day', 'night'], dtype='<U5')
        """
        self._take(self._learnt("classes to rename").renamed(names))
        return self

    def predict(self, images: Any) -> npt.NDArray[Any]:
        """The class of each image; an error if one cannot be read.

        Parameters
        ----------
        images : list of images
            As in :meth:`fit`. :meth:`answer` leaves out those that cannot be read.

        Returns
        -------
        labels : ndarray of shape (n_images,)
            Classes, of the type of ``classes_``.
        """
        reader, matrix = self._matrix(images)
        labels: npt.NDArray[Any] = reader._fitted.learner.predict(matrix)
        return labels

    def predict_proba(self, images: Any) -> npt.NDArray[np.float64]:
        """Class probabilities of each image, in the order of ``classes_``."""
        reader, matrix = self._matrix(images)
        probabilities: npt.NDArray[np.float64] = reader._fitted.learner.predict_proba(matrix)
        return probabilities

    def predict_top_k(self, images: Any, k: int = 5) -> npt.NDArray[Any]:
        """The ``k`` best classes of each image, best first; at most as many as there are."""
        return self.answer(images, k=k).top_labels

    def answer(
        self, images: Any, *, k: int = 1, on_error: Literal["raise", "skip"] = "raise"
    ) -> Answers:
        """Classes and probabilities of images, some of which may not be readable.

        Parameters
        ----------
        images : list of images
            As in :meth:`fit`.
        k : int, default=1
            How many classes to name per image, at most the number of classes.
        on_error : {"raise", "skip"}, default="raise"
            What to do about an image that cannot be read: raise an error, or answer the others
            and list it among the problems.

        Returns
        -------
        answers : Answers
            The answers, the places of the images they belong to, and the problems.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.imaging import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model = model.fit(images, ["night", "day"])
        >>> answers = model.answer(images, k=2)
        >>> answers.labels, answers.top_labels[0], answers.kept
        (array(['night', 'day'], dtype='<U5'), array(['night', 'day'], dtype='<U5'), array([0, 1]))
        """
        reader = self._snapshot()
        known: FittedImages = reader._learnt("answers")
        check_parameters({"on_error": on_error}, {"on_error": _ON_ERROR})
        check_parameters({"k": k}, {"k": [Integer(1, len(known.labels))]})
        found = extract(reader._usable_features(), listed(images), on_error)
        if not len(found.kept):
            nothing = known.labels.classes[:0]
            shares = np.zeros((0, k))
            return Answers(
                nothing, nothing.repeat(k).reshape(0, k), shares, found.kept, found.problems
            )
        labels = known.learner.predict(found.features)
        best, probabilities = best_classes(known.learner, found.features, k)
        return Answers(labels, best, probabilities, found.kept, found.problems)

    def score(self, images: Any, y: npt.ArrayLike | None = None) -> float:
        """Share of right answers; without ``y`` of a folder that holds a folder per class."""
        sources, labels, _ = labelled_sources(images, y)
        return float(np.mean(self.predict(sources) == labels))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, features and learner in it, to a file for :func:`evergrow.load`.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced, whole or not at all.
        """
        write_model(path, *self._to_file())

    def _to_file(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays of a model file, or of a part of another model's file."""
        reader = self._checked_to_save()
        fitted: FittedImages = reader._fitted
        learnt, tensors = fitted.to_file()
        parameters = plain_parameters(reader.get_params(deep=False))
        for name in ("features", "learner"):
            # What is no name is read from what was learnt.
            parameters[name] = parameters[name] if isinstance(parameters[name], str) else None
        return {**common_header(reader, parameters, fitted.labels), **learnt}, tensors

    @classmethod
    def _from_file(
        cls, header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]], build: Build
    ) -> Self:
        fitted = FittedImages.from_file(header, tensors, build)
        parameters = dict(parameters_of(header))
        for name in ("features", "learner"):
            if parameters.get(name) is None:
                parameters[name] = clone(getattr(fitted, name))
        model = cls(**parameters)
        model._check_parameters()
        model._take(fitted)
        return model

    def _take(self, fitted: FittedImages) -> None:
        swap_learnt(self, {"_fitted": fitted})

    def _usable_features(self) -> Any:
        """The fitted features, with the threads and progress bars that are wanted now."""
        features = self._learnt("features").features
        if not isinstance(self.features, str):
            return features
        wanted = {"n_jobs": self.n_jobs, "verbose": int(self.verbose)}
        now = features.get_params(deep=False)
        changed = {name: value for name, value in wanted.items() if now.get(name, value) != value}
        # Neither changes what images become.
        return features.set_params(**changed) if changed else features

    def _matrix(self, images: Any) -> tuple[Self, npt.NDArray[Any]]:
        reader = self._snapshot()
        features = reader._usable_features()
        return reader, extract(features, listed(images), "raise").features

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the input is no matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags
