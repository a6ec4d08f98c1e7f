"""The image classifier: features and a learner in one estimator and one model file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from evergrow.estimators.classifier.persistence import ModelContent
from evergrow.foundation.params import Integer, check_parameters
from evergrow.storage.models.header import Build, Tensors, reset_machine_parameters
from evergrow.vision.classifier.extraction import extract, labelled_sources, list_sources
from evergrow.vision.classifier.fitted import Answers, FittedImages, ImageReport
from evergrow.vision.classifier.learner import ImageLearner
from evergrow.vision.images.parameters import ON_ERROR

# The parameters that the fitted value has as well.
_COMPONENTS = ("features", "learner")


@dataclass(eq=False, repr=False)
class ImageClassifier(ImageLearner):
    """A classifier of images that can learn new classes and examples at any time.

    The parameter `features` turns each image into a vector, and `learner` classifies the vectors.
    Images may be paths, bytes, arrays or Pillow images. A model file contains both parts. See
    :doc:`/images`.

    Parameters
    ----------
    features : {"auto", "embed", "sift", "hsl", "haar"}, transformer, module or callable, \
default="auto"
        How images become vectors:

        - ``"embed"`` uses a network trained on photographs (:class:`~evergrow.Embedder`). It is the
          most accurate choice for photographs of objects.
        - ``"auto"`` is ``"embed"``. For learners that can choose among groups of features, such as
          ``"rls"``, it adds the averages of stages 5, 6 and 7 of the network.
        - ``"sift"``, ``"hsl"`` and ``"haar"`` use visual words that :meth:`fit` learns from patches
          of the training images (:class:`~evergrow.vision.BagOfWords`). They need no network and
          suit textures and drawings.
        - Any transformer of a list of images also works: a scikit-learn pipeline, a PyTorch module,
          or a function from a list of RGB arrays to a matrix. A model with a module or a function
          cannot be saved.
    learner : {"rls", "rls-random", "means", "lda", "forest"} or classifier, default="rls"
        The classifier of the vectors:

        - ``"rls"`` is an :class:`RLSClassifier`, which is fast to update and needs no tuning.
        - ``"rls-random"`` is the same on random features, for hundreds of images per class.
        - ``"means"`` is an :class:`NCMClassifier`.
        - ``"lda"`` is an :class:`NCMClassifier` with ``metric="mahalanobis"``.
        - ``"forest"`` is an :class:`NCMForestClassifier`.
        - Any classifier of Evergrow with ``partial_fit`` also works, such as a
          :class:`RejectingClassifier`; it is cloned.
    keep_features : bool, default=True
        Whether to keep the features of the training images if the learner needs them to
        :meth:`forget` a class. They take 4 bytes per number. With False, the model is smaller, but
        such a learner can no longer forget. Forests always keep their features.
    on_error : {"raise", "skip"}, default="raise"
        What training does if an image cannot be read: raise an error, or skip the image and warn.
    n_jobs : int, default=None
        Number of threads of features and learners that are given by name: None is 1, -1 uses all
        processors. The result is the same for any number.
    random_state : int, RandomState or None, default=None
        Seed of features and learners that are given by name.
    verbose : int, default=0
        Show progress bars if positive, for features and learners that are given by name.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    class_counts_ : ndarray of shape (n_classes,)
        Number of training images per class.
    features_ : transformer
        The fitted features. Only :meth:`fit` changes them.
    learner_ : classifier
        The fitted learner. Do not train it directly.
    report_ : ImageReport or None
        Statistics of the last training call. None after loading, :meth:`forget` or
        :meth:`rename_classes`.

    See Also
    --------
    Embedder : The network behind ``features="embed"``.
    RLSClassifier : The default learner.
    evergrow.workspace.Workspace : Also stores every image, can undo, and can be served.

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

    features: Literal["auto", "embed", "sift", "hsl", "haar"] | Callable[..., Any] | Any = "auto"
    learner: Literal["rls", "rls-random", "means", "lda", "forest"] | Any = "rls"
    _: KW_ONLY
    keep_features: bool = True
    on_error: Literal["raise", "skip"] = "raise"
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    @property
    def features_(self) -> Any:
        """The fitted features."""
        return self._require_fitted("features_").features

    @property
    def learner_(self) -> Any:
        """The fitted learner; do not train it directly."""
        return self._require_fitted("learner_").learner

    @property
    def class_counts_(self) -> npt.NDArray[np.int64]:
        """Number of training images per class."""
        return cast("FittedImages", self._require_fitted("class_counts_")).counts.copy()

    @property
    def report_(self) -> ImageReport | None:
        """Statistics of the last training call."""
        return cast("FittedImages", self._require_fitted("report_")).report

    def predict(self, images: Any) -> npt.NDArray[Any]:
        """Predict the class of each image.

        An image that cannot be read raises an error. Use :meth:`answer` to skip such images.

        Parameters
        ----------
        images : list of images, path or LabelledImages
            Images, as in :meth:`fit`. A folder is searched with
            :func:`~evergrow.vision.find_images`, and the predictions have the order of its result.

        Returns
        -------
        labels : ndarray of shape (n_images,)
            Classes, of the type of ``classes_``.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow import ImageClassifier
        >>> images = [np.full((4, 4, 3), value, np.uint8) for value in (0, 250)]
        >>> model = ImageClassifier(lambda images: [[image.mean()] for image in images])
        >>> model.fit(images, ["night", "day"]).predict(images)
        array(['night', 'day'], dtype='<U5')
        """
        reader, matrix = self._matrix(images)
        return cast("npt.NDArray[Any]", reader._fitted.learner.predict(matrix))

    def predict_proba(self, images: Any) -> npt.NDArray[np.float64]:
        """Predict class probabilities of each image.

        Parameters
        ----------
        images : list of images, path or LabelledImages
            Images, as in :meth:`predict`.

        Returns
        -------
        probabilities : ndarray of shape (n_images, n_classes)
            One column per class, in the order of ``classes_``.
        """
        reader, matrix = self._matrix(images)
        return cast("npt.NDArray[np.float64]", reader._fitted.learner.predict_proba(matrix))

    def predict_top_k(self, images: Any, k: int = 5) -> npt.NDArray[Any]:
        """Predict the `k` best classes of each image, best first.

        Parameters
        ----------
        images : list of images, path or LabelledImages
            Images, as in :meth:`predict`.
        k : int, default=5
            Number of classes. If the model knows fewer, all of them are returned.

        Returns
        -------
        labels : ndarray of shape (n_images, k)
            Classes, of the type of ``classes_``.
        """
        check_parameters({"k": k}, {"k": [Integer(1)]})
        return self.answer(images, k=min(k, len(self.classes_))).top_labels

    def answer(
        self, images: Any, *, k: int = 1, on_error: Literal["raise", "skip"] = "raise"
    ) -> Answers:
        """Predict classes and probabilities, and optionally skip images that cannot be read.

        Parameters
        ----------
        images : list of images, path or LabelledImages
            Images, as in :meth:`predict`.
        k : int, default=1
            Number of classes per image, at most the number of known classes.
        on_error : {"raise", "skip"}, default="raise"
            What to do if an image cannot be read: raise an error, or skip the image and list it
            among the problems.

        Returns
        -------
        answers : Answers
            The predictions, the indices of their images, and the problems.

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
        reader = self._frozen_copy()
        known: FittedImages = reader._require_fitted("answers")
        check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
        check_parameters({"k": k}, {"k": [Integer(1, len(known.labels))]})
        found = extract(reader._usable_features(), list_sources(images), on_error)
        if not len(found.kept):
            nothing = known.labels.classes[:0]
            best, shares = nothing.repeat(k).reshape(0, k), np.zeros((0, k))
            is_known = np.zeros(0, dtype=bool)
            return Answers(nothing, is_known, best, shares, found.kept, found.problems)
        labels = known.learner.predict(found.features)
        is_known = np.isin(labels, known.labels.classes)
        best, shares = _best_classes(known.learner, found.features, k)
        return Answers(labels, is_known, best, shares, found.kept, found.problems)

    def score(self, images: Any, y: npt.ArrayLike | None = None) -> float:
        """Return the accuracy on labelled images.

        An image that cannot be read raises an error.

        Parameters
        ----------
        images : list of images, path or LabelledImages
            Images, as in :meth:`fit`. If a folder or file has splits, ``test`` is used, or ``val``
            if there is no ``test``.
        y : array-like of shape (n_images,), default=None
            The true classes. None if `images` includes them, as a folder of class folders does.

        Returns
        -------
        accuracy : float
            Share of the images that are predicted correctly, from 0 to 1.
        """
        known: FittedImages = self._require_fitted("answers")
        sources, labels, _ = labelled_sources(images, y, "raise", known.labels, split="test")
        return float(np.mean(self.predict(sources) == labels))

    def _to_file(self, **options: Any) -> ModelContent:
        header, tensors = super()._to_file(**options)
        return reset_machine_parameters(header), tensors

    def _stored_parameters(self, inference_only: bool) -> dict[str, Any]:
        parameters = super()._stored_parameters(inference_only)
        # A custom component is read from the fitted value.
        custom = {name for name in _COMPONENTS if not isinstance(parameters[name], str)}
        return {**parameters, **dict.fromkeys(custom)}

    @classmethod
    def _from_file(cls, header: dict[str, Any], tensors: Tensors, build: Build) -> Self:
        return super()._from_file(reset_machine_parameters(header), tensors, build)

    @classmethod
    def _read_parameters(cls, entries: dict[str, Any], fitted: FittedImages) -> dict[str, Any]:
        custom = [name for name in _COMPONENTS if entries.get(name) is None]
        return {**entries, **{name: clone(getattr(fitted, name)) for name in custom}}

    def _matrix(self, images: Any) -> tuple[Self, npt.NDArray[Any]]:
        reader = self._frozen_copy()
        features = reader._usable_features()
        return reader, extract(features, list_sources(images), "raise").features

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the input is not a matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def _best_classes(
    learner: Any, matrix: npt.NDArray[Any], k: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """The ``k`` best classes of each row and their probabilities."""
    probabilities = learner.predict_proba(matrix)
    columns = np.argsort(-probabilities, axis=1, kind="stable")[:, :k]
    if hasattr(learner, "predict_top_k"):
        # Probabilities may be equal after rounding although the scores differ.
        column_of = {label: k for k, label in enumerate(learner.classes_.tolist())}
        best = learner.predict_top_k(matrix, k).tolist()
        columns = np.array([[column_of[label] for label in row] for row in best], dtype=np.intp)
    return learner.classes_[columns], np.take_along_axis(probabilities, columns, axis=1)
