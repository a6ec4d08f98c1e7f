"""Images to vectors with a trained network, as a scikit-learn transformer."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from evergrow.foundation.engine import current_engine
from evergrow.foundation.params import Flag, Integer, Nothing, Rule, check_parameters
from evergrow.foundation.progress import progress_bar
from evergrow.storage.cache_folder import cache_folder
from evergrow.storage.files import write_model
from evergrow.storage.modelfile import Build, check_saveable, common_header
from evergrow.vision.embedding.cache import EmbeddingCache
from evergrow.vision.embedding.embedder_file import (
    CacheFolder,
    Instance,
    Model,
    from_plain,
    named_weights,
    to_plain,
)
from evergrow.vision.embedding.groups import IMAGES_PER_TASK, embed_by_groups
from evergrow.vision.embedding.networks import CallableNetwork, Network, OnnxModel, OnnxNetwork
from evergrow.vision.embedding.onnx_check import read_onnx
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.embedding.pretrained import PRETRAINED
from evergrow.vision.embedding.vectors import EmbeddingTask
from evergrow.vision.images.extraction import Extraction
from evergrow.vision.images.groups import image_groups
from evergrow.vision.images.many import JOBS, ON_ERROR, check_sources, warn_of
from evergrow.vision.images.sources import DEFAULT_LIMITS, ReadLimits, name_of

__all__ = ["Embedder"]

# Networks are made one at a time: two threads that use one embedder share its network.
_making = threading.Lock()
# Networks of the process that this one was forked from. To let go of one would wait for its
# threads, which do not exist here.
_inherited: list[Any] = []


class Embedder(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Vectors of images by a network that was trained on other images.

    Nothing is learnt: the network is used as it is, and images of any classes get vectors at any
    time. Images are read in threads while the network computes. Vectors are kept on disk by the
    content of the images, so that the same images cost next to nothing the next time.

    Parameters
    ----------
    model : str, path, OnnxModel or callable, default="efficientnet-lite0"
        The network: "efficientnet-lite0" (1280 features, trained on ImageNet, 13 ms per image on
        one core); the path of an ONNX file that ends in ``.onnx``, with one input of images and
        one output of features; or a function from a list of images, uint8 of shape (height, width,
        3), to a matrix. Vectors of a function are not kept, and it cannot be saved.
    preprocessing : Preprocessing, default=None
        What the network's images are like. None for what belongs to the named network; for an ONNX
        file, size and layout by its input and the defaults of :class:`Preprocessing`. Give it
        whenever the network was trained on something else.
    batch_size : int, default=16
        Images that the network gets at once. More can be faster on a graphics card. A function
        gets fewer where they are large.
    cache : bool or path, default=True
        Keep vectors, and the converted network, in the user's folder for caches (the environment
        variable ``EVERGROW_CACHE`` can name it), in the folder given, or nowhere.
    limits : ReadLimits, default=None
        How large images may be; None for the limits of :func:`read_image`.
    n_jobs : int, default=None
        Threads that read, and threads that compute; None for one, -1 for one per processor. Workers
        of a cluster have as many as :func:`evergrow.cluster` says.
    verbose : int, default=0
        Show a progress bar when positive.

    Attributes
    ----------
    n_features_out_ : int
        Length of a vector.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import Embedder
    >>> def mean_colours(images):
    ...     return [image.mean(axis=(0, 1)) for image in images]
    >>> images = [np.zeros((4, 4)), np.ones((2, 5))]
    >>> Embedder(mean_colours).fit_transform(images).tolist()
    [[0.0, 0.0, 0.0], [255.0, 255.0, 255.0]]
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "model": [Model()],
        "preprocessing": [Nothing(), Instance(Preprocessing)],
        "batch_size": [Integer(1, 1 << 16)],
        "cache": [Flag(), CacheFolder()],
        "limits": [Nothing(), Instance(ReadLimits)],
        "n_jobs": JOBS,
        "verbose": [Integer(0), Flag()],
    }

    def __init__(
        self,
        model: str | os.PathLike[str] | OnnxModel | Callable[..., Any] = "efficientnet-lite0",
        *,
        preprocessing: Preprocessing | None = None,
        batch_size: int = 16,
        cache: bool | str | os.PathLike[str] = True,
        limits: ReadLimits | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.model = model
        self.preprocessing = preprocessing
        self.batch_size = batch_size
        self.cache = cache
        self.limits = limits
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002
        """Check the parameters and load the network; there is nothing to learn.

        An ONNX file is read anew. From then on, saved and pickled too, the embedder keeps the
        network that was in it, whatever becomes of the file.

        Parameters
        ----------
        X : ignored
            Present because pipelines give it.
        y : ignored
            Likewise.

        Returns
        -------
        self : Embedder
            As it was.
        """
        self._check_parameters()
        with _making:
            self.__dict__.pop("_taken", None)
        self.network()
        return self

    def transform(self, X: Iterable[Any]) -> npt.NDArray[np.float32]:
        """Vectors of images, all of which can be read.

        Parameters
        ----------
        X : sequence of image sources
            What :func:`read_image` takes: paths, bytes, files, Pillow images or arrays.

        Returns
        -------
        features : ndarray of shape (n_images, n_features)
            One row per image, float32.

        Raises
        ------
        evergrow.ImageError
            For the first image that cannot be read. :meth:`extract` can leave it out.
        """
        features: npt.NDArray[np.float32] = self.extract(X).features
        return features

    def extract(self, images: Iterable[Any], *, on_error: str = "raise") -> Extraction:
        """Vectors of images, some of which may not be readable.

        Parameters
        ----------
        images : sequence of image sources
            What :func:`read_image` takes.
        on_error : {"raise", "skip"}, default="raise"
            What to do about an image that cannot be read: raise an error, or leave it out and warn.

        Returns
        -------
        extraction : Extraction
            Features, the places of the images that have them, and the problems.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> from evergrow.vision import Embedder
        >>> embedder = Embedder(lambda images: [[len(image)] for image in images])
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     found = embedder.extract([b"text", np.zeros((5, 5))], on_error="skip")
        >>> found.features, found.kept
        (array([[5.]], dtype=float32), array([1]))
        """
        check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
        check_sources(images)
        sources = list(images)
        extraction = self._extract_elsewhere(sources, on_error)
        if extraction is None:
            extraction = self._extract_here(sources, on_error)
        warn_of(extraction.problems)
        return extraction

    def _extract_elsewhere(self, sources: list[Any], on_error: str) -> Extraction | None:
        """Vectors of many images by the engine in use; None for few, and where there is none."""
        engine = current_engine()
        if engine is None or len(sources) <= IMAGES_PER_TASK:
            return None
        limits = self.limits or DEFAULT_LIMITS
        groups = image_groups(
            sources, most=IMAGES_PER_TASK, is_remote=engine.capacity.is_remote, limits=limits
        )
        return embed_by_groups(engine, groups, self, sources, on_error)

    def _extract_here(self, sources: list[Any], on_error: str) -> Extraction:
        network = self.network()
        with contextlib.ExitStack() as stack:
            cache = self._open_cache(network)
            if cache is not None:
                stack.enter_context(cache)
            task = EmbeddingTask(
                network=network,
                cache=cache,
                limits=self.limits or DEFAULT_LIMITS,
                batch_size=int(self.batch_size),
                skip_bad=on_error == "skip",
            )
            bar = progress_bar("Embedding images", len(sources), int(self.verbose))
            return task.run(sources, effective_n_jobs(self.n_jobs), stack.enter_context(bar))

    def network(self) -> Network:
        """The network, made when it is first needed.

        For those who read images by themselves and want to say when the network runs.
        """
        self._check_parameters()
        n_threads = effective_n_jobs(self.n_jobs)
        # The runtime's threads do not survive a fork; and parameters can be set at any time.
        with _making:
            made_for = (os.getpid(), self._used_model(), self.preprocessing, n_threads)
            known = vars(self).get("_made")
            if known is not None and known[0][0] != os.getpid():
                _inherited.append(known)
            if known is None or known[0] != made_for:
                known = (made_for, self._make_network(made_for[1], n_threads))
                self._made = known
        network: Network = known[1]
        return network

    @property
    def n_features_out_(self) -> int:
        """Length of a vector; loads the network."""
        return int(self.network().n_features)

    @property
    def _n_features_out(self) -> int:
        """For scikit-learn, which names the output by number."""
        return self.n_features_out_

    def _check_parameters(self) -> None:
        check_parameters({name: getattr(self, name) for name in self._rules}, self._rules)

    def _cache_folder(self) -> Path | None:
        if isinstance(self.cache, (bool, np.bool_)):
            return cache_folder() if self.cache else None
        return Path(self.cache)

    def _open_cache(self, network: Network) -> EmbeddingCache | None:
        folder = self._cache_folder()
        if folder is None or network.key is None:
            return None
        # Vectors of images beyond the usual limits are for those who allow as much.
        pixels = (self.limits or DEFAULT_LIMITS).max_pixels
        ending = "" if pixels <= DEFAULT_LIMITS.max_pixels else f"-{pixels}"
        path = folder / f"embeddings-{network.key[:32]}{ending}.sqlite"
        return EmbeddingCache(path, network.n_features)

    def _used_model(self) -> Any:
        """The model; for the path of a file what was in it when it was first used.

        What was learnt from the vectors of one network means nothing with those of another.
        """
        model = self.model
        if not isinstance(model, (str, os.PathLike)) or model in PRETRAINED:
            return model
        taken = vars(self).get("_taken")
        if taken is None or taken[0] != model:
            taken = (model, OnnxModel(read_onnx(model)))
            self._taken = taken
        return taken[1]

    def _make_network(self, model: Any, n_threads: int) -> Network:
        name, weights, preprocessing = "the ONNX model", None, self.preprocessing
        if isinstance(model, str):
            pretrained = PRETRAINED[model]
            weights, name = pretrained.weights_sha256(), pretrained.name
            self._check_weights(name, weights)
            content = pretrained.onnx(self._cache_folder())
            preprocessing = preprocessing or pretrained.preprocessing
        elif isinstance(model, OnnxModel):
            content = model.content
            if model is not self.model:
                name = f"the ONNX model {name_of(self.model)}"
        else:
            if preprocessing is not None:
                raise ValueError("preprocessing must be None where the model is a callable")
            return CallableNetwork(model)
        return OnnxNetwork(
            content, name=name, preprocessing=preprocessing, n_threads=n_threads, weights=weights
        )

    def _check_weights(self, name: str, weights: str) -> None:
        # Said by the file or the pickle that the embedder came from, or by its first use.
        expected = vars(self).get("_saved_weights")
        if expected is None or expected[0] != name:
            self._saved_weights = (name, weights)
        elif expected[1] != weights:
            raise ValueError(
                f"the embedder was used with other weights of {name}: what was learnt from its "
                "vectors does not fit those of the installed package"
            )

    def __getstate__(self) -> dict[str, Any]:
        """All but the network, which lives in this process."""
        return {name: value for name, value in super().__getstate__().items() if name != "_made"}

    def __sklearn_is_fitted__(self) -> bool:
        """Nothing is learnt, so nothing is missing."""
        return True

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that images are no matrix and that nothing is learnt."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        tags.no_validation = True
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the embedder to a file that :func:`evergrow.load` reads.

        A named network is saved by name and by the hash of its weights, an ONNX file is carried
        inside. The folder of a cache stays where it is: the loaded embedder uses the user's own.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced whole or not at all.
        """
        header, tensors = self._to_file()
        write_model(path, header, tensors)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays, for a file of its own or inside that of a pipeline."""
        check_saveable(type(self))
        # Checks parameters and network: else the file could not be used.
        self.network()
        parameters = {**self.get_params(deep=False), "model": self._used_model()}
        parameters, tensors = to_plain(parameters)
        header = common_header(self, parameters, None)
        header["weights"] = named_weights(self.model)
        return header, tensors

    @classmethod
    def _from_file(
        cls,
        header: dict[str, Any],
        tensors: dict[str, npt.NDArray[Any]],
        build: Build,  # noqa: ARG003
    ) -> Self:
        parameters, weights = from_plain(header, tensors)
        check_parameters({**cls().get_params(), **parameters}, cls._rules)
        embedder = cls(**parameters)
        embedder._saved_weights = weights
        return embedder

    # Name and hash of the weights that were used, here or where a file was saved.
    _saved_weights: tuple[str, str] | None
    # The path of an ONNX file, and what was in it when it was first used.
    _taken: tuple[Any, OnnxModel]
