"""Local features: each image as the descriptors of its patches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from evergrow.estimators.classifier.persistence import ModelContent
from evergrow.foundation.errors import BadImage, InvalidInputError, InvalidTypeError
from evergrow.foundation.params import (
    Choice,
    Integer,
    Nothing,
    RandomState,
    Rule,
    Satisfies,
    check_parameters,
)
from evergrow.foundation.progress import progress_bar
from evergrow.storage.models.header import Build, Tensors, parameters_of, plain_parameters
from evergrow.storage.ragged import RaggedArray
from evergrow.vision.descriptors.describer import (
    Describer,
    collect,
    describe_job,
    description_job,
    draw_seed,
    pair_with_masks,
)
from evergrow.vision.descriptors.kinds import DESCRIPTORS, Descriptor, custom_descriptor
from evergrow.vision.descriptors.patches import (
    IS_PATCHES,
    Patches,
    RandomPatches,
    patches_from_json,
    patches_to_json,
)
from evergrow.vision.images.parameters import JOBS, ON_ERROR, VERBOSE, instance_of
from evergrow.vision.images.prefetch import prefetch
from evergrow.vision.images.reader import check_sources
from evergrow.vision.images.results import Extraction, read_or_skip, warn_about
from evergrow.vision.images.transformer import StatelessTransformer

Rows = npt.NDArray[np.float32]

_N_PATCHES: list[Rule] = [Nothing(), Integer(1, 1 << 24)]


@dataclass(eq=False, repr=False)
class LocalFeatures(StatelessTransformer):
    """Describe each image by many of its patches.

    Bags of visual words and Fisher vectors are computed from these descriptors. Nothing is learnt:
    :meth:`fit` only checks the parameters.

    Parameters
    ----------
    descriptor : {"haar", "hsl", "sift"} or function, default="haar"
        How a patch becomes a vector:

        - ``"haar"``: Haar wavelets of hue, saturation and lightness (768 values). The best of the
          three for trees.
        - ``"hsl"``: hue, saturation and lightness of 16 x 16 cells (768 values), for objects that
          differ in colour.
        - ``"sift"``: upright SIFT of the grey image (128 values from 0 to 255), for shape without
          colour.
        - A function takes patches of shape (n, 16, 16, 3), RGB in [0, 1], and returns a matrix with
          one row per patch. Several threads may call it at the same time.
    patches : RandomPatches or DensePatches, default=RandomPatches()
        The patches to describe.
    max_side : int, default=None
        Maximum side of an image in pixels; larger images are reduced first. None keeps their size.
        Set it for photographs from a camera: an image of 24 megapixels needs 0.6 to 2.4 GB of
        memory per thread, with ``max_side=1024`` only 20 to 70 MB.
    random_state : int, RandomState or None, default=0
        Seed of the patches. With an integer, an image always gets the same patches. With None, they
        differ in every call.
    n_jobs : int, default=None
        Number of threads, each for one image: None is 1, -1 uses all processors.
    verbose : int, default=0
        Show a progress bar if positive.

    Attributes
    ----------
    n_features_out_ : int
        Length of a descriptor.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import LocalFeatures, RandomPatches
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 40, 60, 3)).astype(np.uint8)
    >>> LocalFeatures("haar", patches=RandomPatches(50)).fit_transform(images)
    RaggedArray(2 images, 100 rows, 768 features)
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "descriptor": [Choice(tuple(DESCRIPTORS)), Satisfies("a function", callable)],
        "patches": [IS_PATCHES],
        "max_side": [Nothing(), Integer(1, 1 << 24)],
        "random_state": [Nothing(), RandomState()],
        "n_jobs": JOBS,
        "verbose": VERBOSE,
    }

    descriptor: str | Callable[[Rows], Any] = "haar"
    _: KW_ONLY
    patches: Patches = RandomPatches()  # noqa: RUF009
    max_side: int | None = None
    random_state: int | np.random.RandomState | None = 0
    n_jobs: int | None = None
    verbose: int = 0

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002
        """Check the parameters; there is nothing to learn.

        Parameters
        ----------
        X : ignored
            Not used; present for pipelines.
        y : ignored
            Present for pipelines.

        Returns
        -------
        self : estimator
            The same estimator.
        """
        self._check_parameters()
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self.patches.check()

    def _descriptor(self) -> Descriptor:
        if isinstance(self.descriptor, str):
            return DESCRIPTORS[self.descriptor]
        return custom_descriptor(self.descriptor)

    def _describer(self, n_patches: int | None) -> Describer:
        """Check the parameters and return them in the form that threads use."""
        self._check_parameters()
        check_parameters({"n_patches": n_patches}, {"n_patches": _N_PATCHES})
        patches = self.patches if n_patches is None else self.patches.limited(int(n_patches))
        return Describer(self._descriptor(), patches, self.max_side, draw_seed(self.random_state))

    @property
    def n_features_out_(self) -> int:
        """Length of a descriptor."""
        self._check_parameters()
        return self._descriptor().n_features

    def describe(
        self, image: Any, *, mask: npt.ArrayLike | None = None, n_patches: int | None = None
    ) -> tuple[Rows, npt.NDArray[np.float32]]:
        """Describe one image, and return its patches.

        Parameters
        ----------
        image : path, bytes, binary file, Pillow image or ndarray
            The image, as in :func:`read_image`.
        mask : bool array-like of shape (height, width), default=None
            Where the centres of patches may lie; None for anywhere.
        n_patches : int, default=None
            Number of patches, at most those of the grid for dense patches; None for all.

        Returns
        -------
        descriptors : ndarray of shape (n_patches, n_features_out_)
            One row per patch.
        boxes : ndarray of shape (n_patches, 3)
            Left, top and side of each patch in pixels of the original image, even if ``max_side``
            reduced it.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import DensePatches, LocalFeatures
        >>> features = LocalFeatures("hsl", patches=DensePatches(step=8, size=16))
        >>> descriptors, boxes = features.describe(np.zeros((16, 32, 3), np.uint8))
        >>> descriptors.shape, boxes[-1].tolist()
        ((3, 768), [16.0, 0.0, 16.0])
        """
        return self._describer(n_patches).describe(image, mask)

    def iterate(
        self,
        images: Iterable[Any],
        *,
        n_patches: int | None = None,
        masks: Iterable[npt.ArrayLike | None] | None = None,
        on_error: str = "raise",
    ) -> Iterator[tuple[int, Rows | BadImage]]:
        """Describe images one at a time; threads describe the next ones in advance.

        Only a few images per thread are in memory at the same time.

        Parameters
        ----------
        images : iterable
            Images as in :func:`read_image`.
        n_patches : int, default=None
            As in :meth:`describe`.
        masks : iterable, default=None
            For each image a bool array of its height and width, or None for anywhere.
        on_error : {"raise", "skip"}, default="raise"
            What to do if an image cannot be read, or its mask is empty or of another size: raise an
            error, or yield a :class:`BadImage` in its place.

        Yields
        ------
        index : int
            The index of the image, from 0.
        descriptors : ndarray of shape (n_patches, n_features_out_) or BadImage
            One row per patch, or why the image could not be described.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import LocalFeatures
        >>> images = [np.zeros((30, 30, 3), np.uint8), b"text"]
        >>> for index, rows in LocalFeatures().iterate(images, n_patches=9, on_error="skip"):
        ...     print(index, getattr(rows, "shape", "no image"))
        0 (9, 768)
        1 no image
        """
        describer = self._describer(n_patches)
        check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
        check_sources(images)

        def describe(item: tuple[int, tuple[Any, Any]]) -> tuple[int, Rows | BadImage]:
            index, (source, mask) = item
            return read_or_skip(lambda: describer.describe(source, mask, index)[0], index, on_error)

        pairs = pair_with_masks(images, masks)
        return prefetch(describe, enumerate(pairs), effective_n_jobs(self.n_jobs))

    def transform(self, X: Iterable[Any]) -> RaggedArray:
        """Describe all images; use :meth:`iterate` if memory is short.

        Parameters
        ----------
        X : iterable of image sources
            Images as in :func:`read_image`.

        Returns
        -------
        descriptors : RaggedArray
            For each image a matrix with one row per patch, float32.

        Raises
        ------
        evergrow.ImageError
            For the first image that cannot be read; :meth:`extract` can skip it instead.
        """
        descriptors: RaggedArray = self.extract(X).features
        return descriptors

    def extract(
        self,
        images: Iterable[Any],
        *,
        masks: Iterable[npt.ArrayLike | None] | None = None,
        on_error: str = "raise",
    ) -> Extraction:
        """Describe all images that can be read; use :meth:`iterate` if memory is short.

        Parameters
        ----------
        images : iterable
            The image, as in :func:`read_image`.
        masks : iterable, default=None
            For each image a bool array of its height and width, or None for anywhere.
        on_error : {"raise", "skip"}, default="raise"
            What to do if an image cannot be described: raise an error, or skip it and warn.

        Returns
        -------
        extraction : Extraction
            The descriptors as a :class:`RaggedArray`, the indices of their images, and the
            problems.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import LocalFeatures
        >>> images = np.zeros((2, 30, 30, 3), np.uint8)
        >>> mask = np.zeros((30, 30), dtype=bool)
        >>> mask[5:9, 5:9] = True
        >>> LocalFeatures().extract(images, masks=[mask, None]).kept
        array([0, 1])
        """
        # Masks are used for a few training images, which are described in this process.
        job = description_job(self, images) if masks is None else None
        if job is None:
            stream = self.iterate(images, masks=masks, on_error=on_error)
        else:
            check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
            stream = describe_job(*job, on_error)
        total = len(images) if isinstance(images, Sized) else 0
        # A job shows a progress bar of its own.
        with progress_bar("Describing images", total, self.verbose if job is None else 0) as show:
            extraction = collect(stream, self.n_features_out_, show)
        warn_about(extraction.problems)
        return extraction

    def _to_file(self) -> ModelContent:
        return self._file_header(self._to_json()), {}

    @classmethod
    def _from_file(cls, header: dict[str, Any], _tensors: Tensors, _build: Build) -> Self:
        return cls._from_json(parameters_of(header))

    def _to_json(self) -> dict[str, Any]:
        """The parameters as JSON values; a ``TypeError`` for a custom descriptor."""
        if not isinstance(self.descriptor, str):
            raise InvalidTypeError(
                "features with a custom descriptor cannot be saved, because a model file contains "
                f"no functions; use one of {sorted(DESCRIPTORS)}"
            )
        parameters = plain_parameters(self.get_params(deep=False))
        return {**parameters, "patches": patches_to_json(self.patches)}

    @classmethod
    def _from_json(cls, parameters: Any) -> Self:
        """Rebuild from :meth:`_to_json`; a ``ValueError`` if a parameter is invalid."""
        if not isinstance(parameters, dict) or not isinstance(parameters.get("descriptor"), str):
            raise InvalidInputError(
                f"features must be described by their parameters, got {parameters!r}"
            )
        patches = patches_from_json(parameters.get("patches"))
        # fit only checks the parameters.
        return cls(**{**parameters, "patches": patches}).fit()


IS_LOCAL_FEATURES = instance_of(LocalFeatures, "LocalFeatures(...)")
