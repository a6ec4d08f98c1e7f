"""Local features: every image as descriptors of its patches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, TransformerMixin

from evergrow.foundation.errors import BadImage, ImageError
from evergrow.foundation.params import (
    Choice,
    Flag,
    Integer,
    Nothing,
    RandomState,
    Rule,
    check_parameters,
)
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.ragged import RaggedArray
from evergrow.storage.files import write_model
from evergrow.storage.modelfile import Build, check_saveable, common_header, parameters_of
from evergrow.vision.descriptors.describing import Describing, pairs, seed_of
from evergrow.vision.descriptors.groups import describe_by_groups, describing_groups
from evergrow.vision.descriptors.kinds import (
    DESCRIPTORS,
    AnyFunction,
    Descriptor,
    custom_descriptor,
)
from evergrow.vision.descriptors.local_file import features_from_json, features_to_json
from evergrow.vision.descriptors.patches import AnyPatches, Patches, RandomPatches
from evergrow.vision.descriptors.stacking import collect
from evergrow.vision.images.ahead import in_order_ahead
from evergrow.vision.images.extraction import Extraction
from evergrow.vision.images.many import JOBS, ON_ERROR, check_sources, warn_of

__all__ = ["LocalFeatures"]

Rows = npt.NDArray[np.float32]

_N_PATCHES: list[Rule] = [Nothing(), Integer(1, 1 << 24)]


class LocalFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Describe each image by many of its patches.

    What bags of visual words, Fisher vectors and forests of patches are made of. There is nothing
    to learn: :meth:`fit` only checks the parameters.

    Parameters
    ----------
    descriptor : {"haar", "hsl", "sift"} or function, default="haar"
        What is made of a patch. ``"hsl"``: hue, saturation and lightness of 16 x 16 cells, each the
        mean colour of its part of the patch (768 values), for objects that colour tells apart.
        ``"haar"``: the Haar wavelets of those three planes (768 values), whose first values say
        most; the best of the three for trees. ``"sift"``: upright SIFT of the grey image (128
        values from 0 to 255), for shape without colour. A function takes patches of shape (n, 16,
        16, 3), RGB in [0, 1], and gives a matrix with a row per patch; it is called by several
        threads at a time.
    patches : RandomPatches or DensePatches, default=RandomPatches()
        Where to look.
    max_side : int, default=None
        Larger images are first made as small that no side is longer; None to leave them. It makes
        sizes in pixels mean the same in all images, and bounds time and memory: each thread takes,
        per pixel of its image, about 27 bytes for ``"haar"`` and ``"hsl"``, 28 to 36 for
        ``"sift"``, and 100 for ``"sift"`` of patches below 16 pixels. Set it for photographs from a
        camera: 24 megapixels need 0.6 to 2.4 GB, with ``max_side=1024`` it is 20 to 70 MB.
    random_state : int, RandomState or None, default=0
        Seed of the patches. They depend on it and the pixels of the image alone: neither on other
        images, nor their order, nor ``n_jobs``. None draws others at every call.
    n_jobs : int, default=None
        Threads, each at work on an image of its own; None for one, -1 for one per processor.
    verbose : int, default=0
        Show a progress bar when positive.

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
        "descriptor": [Choice(tuple(DESCRIPTORS)), AnyFunction()],
        "patches": [AnyPatches()],
        "max_side": [Nothing(), Integer(1, 1 << 24)],
        "random_state": [Nothing(), RandomState()],
        "n_jobs": JOBS,
        "verbose": [Integer(0), Flag()],
    }

    def __init__(
        self,
        descriptor: str | Callable[[Rows], Any] = "haar",
        *,
        patches: Patches = RandomPatches(),  # noqa: B008
        max_side: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.descriptor = descriptor
        self.patches = patches
        self.max_side = max_side
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002
        """Check the parameters; there is nothing to learn.

        Parameters
        ----------
        X, y : ignored
            For pipelines.

        Returns
        -------
        self : estimator
            As it was.
        """
        self._check()
        return self

    def _check(self) -> None:
        check_parameters({name: getattr(self, name) for name in self._rules}, self._rules)
        self.patches.check()

    def _descriptor(self) -> Descriptor:
        if isinstance(self.descriptor, str):
            return DESCRIPTORS[self.descriptor]
        return custom_descriptor(self.descriptor)

    def _describing(self, n_patches: int | None) -> Describing:
        """All that describing an image needs, checked."""
        self._check()
        check_parameters({"n_patches": n_patches}, {"n_patches": _N_PATCHES})
        patches = self.patches if n_patches is None else self.patches.limited(int(n_patches))
        return Describing(self._descriptor(), patches, self.max_side, seed_of(self.random_state))

    @property
    def n_features_out_(self) -> int:
        """Length of a descriptor."""
        self._check()
        return self._descriptor().n_features

    def describe(
        self, image: Any, *, mask: npt.ArrayLike | None = None, n_patches: int | None = None
    ) -> tuple[Rows, npt.NDArray[np.float32]]:
        """Describe one image, and tell where its patches lie.

        Parameters
        ----------
        image : path, bytes, binary file, Pillow image or ndarray
            What :func:`read_image` takes.
        mask : bool array-like of shape (height, width), default=None
            Where the centres of patches may lie; None for everywhere.
        n_patches : int, default=None
            Describe this many patches, of a grid at most as many; None for all.

        Returns
        -------
        descriptors : ndarray of shape (n_patches, n_features_out_)
            A row per patch.
        boxes : ndarray of shape (n_patches, 3)
            Left, top and side of each patch in pixels of the image as given, even where
            ``max_side`` made it smaller.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow.vision import DensePatches, LocalFeatures
        >>> features = LocalFeatures("hsl", patches=DensePatches(step=8, size=16))
        >>> descriptors, boxes = features.describe(np.zeros((16, 32, 3), np.uint8))
        >>> descriptors.shape, boxes[-1].tolist()
        ((3, 768), [16.0, 0.0, 16.0])
        """
        return self._describing(n_patches).describe(image, mask)

    def iterate(
        self,
        images: Iterable[Any],
        *,
        n_patches: int | None = None,
        masks: Iterable[npt.ArrayLike | None] | None = None,
        on_error: str = "raise",
    ) -> Iterator[tuple[int, Rows | BadImage]]:
        """Describe images one after the other, a few ahead in threads.

        However many there are, no more than a few per thread lie in memory.

        Parameters
        ----------
        images : iterable
            What :func:`read_image` takes.
        n_patches : int, default=None
            As in :meth:`describe`.
        masks : iterable, default=None
            For each image a bool array of its height and width, or None for everywhere.
        on_error : {"raise", "skip"}, default="raise"
            What to do about an image that cannot be read or whose mask is empty or of another
            size: raise an error that names it, or give a :class:`BadImage` in its place.

        Yields
        ------
        index : int
            The place of the image, from 0.
        descriptors : ndarray of shape (n_patches, n_features_out_) or BadImage
            A row per patch, or why there are none.

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
        work = self._describing(n_patches)
        check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
        check_sources(images)

        def one(item: tuple[int, tuple[Any, Any]]) -> tuple[int, Rows | BadImage]:
            index, (source, mask) = item
            try:
                return index, work.describe(source, mask, index)[0]
            except ImageError as error:
                if on_error == "raise":
                    raise
                return index, BadImage(index, error.source, error.reason)

        return in_order_ahead(one, enumerate(pairs(images, masks)), effective_n_jobs(self.n_jobs))

    def transform(self, images: Iterable[Any]) -> RaggedArray:
        """Describe all images.

        Parameters
        ----------
        images : iterable
            What :func:`read_image` takes. For more than fit into memory use :meth:`iterate`.

        Returns
        -------
        descriptors : RaggedArray
            For each image a matrix with a row per patch, float32.
        """
        described: RaggedArray = self.extract(images).features
        return described

    def extract(
        self,
        images: Iterable[Any],
        *,
        masks: Iterable[npt.ArrayLike | None] | None = None,
        on_error: str = "raise",
    ) -> Extraction:
        """Describe all images that can be, and tell which.

        Parameters
        ----------
        images : iterable
            What :func:`read_image` takes.
        masks : iterable, default=None
            For each image a bool array of its height and width, or None for everywhere.
        on_error : {"raise", "skip"}, default="raise"
            What to do about an image that cannot be described: raise an error, or leave it out and
            warn.

        Returns
        -------
        extraction : Extraction
            The descriptors as a :class:`RaggedArray`, the places of their images, the problems.

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
        # Masks are for a few images to learn from: those are described here.
        elsewhere = describing_groups(self, images) if masks is None else None
        verbose = self.verbose if elsewhere is None else 0
        if elsewhere is None:
            stream = self.iterate(images, masks=masks, on_error=on_error)
        else:
            check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
            stream = describe_by_groups(*elsewhere, on_error)
        total = len(images) if isinstance(images, Sized) else 0
        with progress_bar("Describing images", total, verbose) as show:
            extraction = collect(stream, self.n_features_out_, show)
        warn_of(extraction.problems)
        return extraction

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parameters to a file that :func:`evergrow.load` reads.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced whole or not at all.

        Examples
        --------
        >>> import evergrow, tempfile, os
        >>> from evergrow.vision import LocalFeatures
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     LocalFeatures("sift").save(os.path.join(folder, "features.evergrow"))
        ...     evergrow.load(os.path.join(folder, "features.evergrow"))
        LocalFeatures(descriptor='sift')
        """
        header, tensors = self._to_file()
        write_model(path, header, tensors)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays, for a file of its own or inside that of another estimator."""
        self._check()
        check_saveable(type(self))
        return common_header(self, features_to_json(self), None), {}

    @classmethod
    def _from_file(
        cls,
        header: dict[str, Any],
        tensors: dict[str, npt.NDArray[Any]],  # noqa: ARG003
        build: Build,  # noqa: ARG003
    ) -> Self:
        return features_from_json(cls, parameters_of(header))

    def __sklearn_is_fitted__(self) -> bool:
        """There is nothing to learn."""
        return True

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that it takes images and need not be fitted."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        return tags
