"""A classifier of images: features and a learner that grows, in one estimator and one file."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from evergrow.foundation.params import Integer, check_parameters
from evergrow.storage.files import write_model
from evergrow.storage.modelfile import (
    OF_THE_MACHINE,
    Build,
    common_header,
    parameters_of,
    plain_parameters,
)
from evergrow.vision.classifier.answers import Answers, best_classes
from evergrow.vision.classifier.extracting import extract, labelled_sources, listed
from evergrow.vision.classifier.fitted import FittedImages
from evergrow.vision.classifier.growing import ON_ERROR, GrowingImages
from evergrow.vision.classifier.report import ImageReport

__all__ = ["ImageClassifier"]


class ImageClassifier(GrowingImages):
    """A classifier of images that takes new classes and examples at any time.

    Images are turned into numbers by ``features``, and those are learnt by ``learner``. The file of
    a saved model holds both.

    Parameters
    ----------
    features : {"embed", "sift", "hsl", "haar"}, transformer or callable, default="embed"
        How images become numbers: ``"embed"`` by a network trained on photographs
        (:class:`~evergrow.vision.Embedder`), the most accurate for photographs of things; the
        others by visual words that :meth:`fit` learns from patches of the training images
        (:class:`~evergrow.vision.BagOfWords` of an ERC forest), which needs no network and suits
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
    >>> from evergrow.vision import ImageClassifier
    >>> dark, bright = np.zeros((8, 8, 3), np.uint8), np.full((8, 8, 3), 255, np.uint8)
    >>> model = ImageClassifier(lambda images: [image.mean(axis=(0, 1)) for image in images])
    >>> model = model.fit([dark, bright], ["night", "day"])
    >>> red = np.zeros((8, 8, 3), np.uint8) + np.array([255, 0, 0], np.uint8)
    >>> model.partial_fit([red], ["sunset"]).predict([bright, red])
    array(['day', 'sunset'], dtype='<U6')
    """

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
        check_parameters({"k": k}, {"k": [Integer(1)]})
        return self.answer(images, k=min(k, len(self.classes_))).top_labels

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
        >>> from evergrow.vision import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model = model.fit(images, ["night", "day"])
        >>> answers = model.answer(images, k=2)
        >>> answers.labels, answers.top_labels[0], answers.kept
        (array(['night', 'day'], dtype='<U5'), array(['night', 'day'], dtype='<U5'), array([0, 1]))
        """
        reader = self._snapshot()
        known: FittedImages = reader._learnt("answers")
        check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
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
        """Share of right answers; without ``y`` of a folder that holds a folder per class.

        An error if an image cannot be read, or something in the folder that may be one.
        """
        known: FittedImages = self._learnt("answers")
        sources, labels, _ = labelled_sources(images, y, "raise", known.labels)
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
        parameters |= OF_THE_MACHINE
        return {**common_header(reader, parameters, fitted.labels), **learnt}, tensors

    @classmethod
    def _from_file(
        cls, header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]], build: Build
    ) -> Self:
        fitted = FittedImages.from_file(header, tensors, build)
        parameters = {**parameters_of(header), **OF_THE_MACHINE}
        for name in ("features", "learner"):
            if parameters.get(name) is None:
                parameters[name] = clone(getattr(fitted, name))
        model = cls(**parameters)
        model._check_parameters()
        model._take(fitted)
        return model

    def _matrix(self, images: Any) -> tuple[Self, npt.NDArray[Any]]:
        reader = self._snapshot()
        features = reader._usable_features()
        return reader, extract(features, listed(images), "raise").features

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the input is no matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags
