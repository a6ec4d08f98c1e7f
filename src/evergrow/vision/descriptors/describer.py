"""From images to the descriptors of their patches: one image, a stream, or the parts of a job."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import frozen_copy
from evergrow.foundation.engine import Arrays, current_engine
from evergrow.foundation.errors import BadImage, ImageError, InvalidInputError
from evergrow.foundation.formatting import display_name
from evergrow.storage.ragged import RaggedArray
from evergrow.vision.descriptors.kinds import Descriptor
from evergrow.vision.descriptors.patches import Patches, check_mask
from evergrow.vision.images.parts import ImageJob, ImagePart, problem_arrays
from evergrow.vision.images.reader import check_sources, read_image
from evergrow.vision.images.results import Extraction
from evergrow.vision.images.sources import import_extra

if TYPE_CHECKING:
    from evergrow.vision.descriptors.local_features import LocalFeatures

RGB = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.float32]

# Few, because the descriptors of one image may take megabytes.
IMAGES_PER_PART = 16


class MaskError(ImageError):
    """A mask is empty or does not fit its image."""

    def __str__(self) -> str:
        return f"cannot use the mask of {self.source}: {self.reason}"


@dataclass(frozen=True)
class Describer:
    """How images are described; immutable, so that threads can share it."""

    descriptor: Descriptor
    patches: Patches
    max_side: int | None
    seed: int

    def describe(
        self, source: Any, mask: npt.ArrayLike | None = None, index: int | None = None
    ) -> tuple[Rows, Rows]:
        """Compute descriptors and boxes; boxes are in pixels of the original image."""
        image = read_image(source)
        small = shrink_image(image, self.max_side)
        small_mask = None
        if mask is not None:
            name = (
                display_name(source) if index is None else f"image {index}, {display_name(source)}"
            )
            try:
                small_mask = shrink_mask(check_mask(mask, image.shape[:2]), small.shape[:2])
            except ValueError as error:
                raise MaskError(name, str(error)) from error
        seed = [self.seed, *_fingerprint(small)]
        boxes = self.patches.boxes(small.shape[:2], seed, small_mask)
        return self.descriptor.describe(small, boxes), _enlarge_boxes(boxes, small, image)


def pair_with_masks(
    images: Iterable[Any], masks: Iterable[npt.ArrayLike | None] | None
) -> Iterator[tuple[Any, npt.ArrayLike | None]]:
    """Pair each image with its mask; a ``ValueError`` if their numbers differ."""
    if masks is None:
        return ((image, None) for image in images)
    if isinstance(images, Sized) and isinstance(masks, Sized) and len(images) != len(masks):
        raise InvalidInputError(
            f"there must be one mask per image, {len(images)}, got {len(masks)}"
        )
    return zip(images, masks, strict=True)


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Draw one seed for all images of a call."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(random_state)


def _fingerprint(image: RGB) -> list[int]:
    """Numbers that identify an image by its pixels."""
    digest = hashlib.blake2b(repr(image.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(image).data)
    return [int(word) for word in np.frombuffer(digest.digest(), "<u4")]


def shrink_image(image: RGB, max_side: int | None) -> RGB:
    """Reduce the image if a side is longer than ``max_side``."""
    height, width = image.shape[:2]
    if max_side is None or max(height, width) <= max_side:
        return image
    scale = max_side / max(height, width)
    size = tuple(max(1, round(side * scale)) for side in (width, height))
    pillow = import_extra("PIL.Image")
    # Pillow's bilinear filter is antialiased: its support grows with the reduction.
    resized = pillow.fromarray(image).resize(size, pillow.Resampling.BILINEAR)
    return np.asarray(resized)


def shrink_mask(mask: Mask, shape: tuple[int, ...]) -> Mask:
    """Reduce a mask; a pixel is True if any pixel it covers was, so thin masks do not vanish."""
    if mask.shape == shape:
        return mask
    ys, xs = np.nonzero(mask)
    smaller = np.zeros(shape, dtype=np.bool_)
    smaller[ys * shape[0] // mask.shape[0], xs * shape[1] // mask.shape[1]] = True
    return smaller


def _enlarge_boxes(boxes: npt.NDArray[np.int32], small: RGB, image: RGB) -> Rows:
    down, across = (image.shape[axis] / small.shape[axis] for axis in (0, 1))
    # The two factors differ slightly by rounding; patches must stay squares inside the image.
    factors = np.array([across, down, min(across, down)], dtype=np.float64)
    return np.asarray(boxes * factors, dtype=np.float32)


class RowStack:
    """Collects the rows of images in one growing matrix, without ever holding them twice.

    >>> stack = RowStack(2)
    >>> stack.add(np.ones((3, 2), np.float32))
    >>> stack.ragged()
    RaggedArray(1 images, 3 rows, 2 features)
    """

    def __init__(self, n_features: int) -> None:
        self._values: Rows = np.empty((0, n_features), np.float32)
        self._offsets = [0]

    def add(self, rows: Rows) -> None:
        """Add the rows of the next image."""
        first, last = self._offsets[-1], self._offsets[-1] + len(rows)
        if last > len(self._values):
            self._resize(max(last, len(self._values) * 3 // 2))
        self._values[first:last] = rows
        self._offsets.append(last)

    def _resize(self, n_rows: int) -> None:
        # The operating system moves large blocks by remapping them, without a copy. No other
        # reference to the matrix exists yet.
        self._values.resize((n_rows, self._values.shape[1]), refcheck=False)

    def ragged(self) -> RaggedArray:
        """All rows with the offsets of the images; nothing may be added afterwards."""
        self._resize(self._offsets[-1])
        return RaggedArray(self._values, self._offsets)


def collect(
    stream: Iterable[tuple[int, Rows | BadImage]],
    n_features: int,
    show: Callable[[int], None] | None,
) -> Extraction:
    """Collect a stream of descriptors into one extraction."""
    stack, kept, problems = RowStack(n_features), [], []
    for index, rows in stream:
        if isinstance(rows, BadImage):
            problems.append(rows)
        else:
            stack.add(rows)
            kept.append(index)
        if show is not None:
            show(index + 1)
    return Extraction(stack.ragged(), np.array(kept, dtype=np.int64), tuple(problems))


def description_job(
    features: LocalFeatures, images: Iterable[Any]
) -> tuple[ImageJob, LocalFeatures] | None:
    """A job for the engine in use, and the features that its tasks use.

    None if the images are described in this process: without an engine, for few images, and for an
    iterator of images.
    """
    engine = current_engine()
    if engine is None or not isinstance(images, Sequence | np.ndarray):
        return None
    if len(images) <= IMAGES_PER_PART:
        return None
    check_sources(images)
    features._check_parameters()
    job = ImageJob.for_engine(list(images), images_per_part=IMAGES_PER_PART)
    if job is None:
        return None
    # One seed for all images of a call, as without parts.
    seeded = frozen_copy(features).set_params(random_state=draw_seed(features.random_state))
    if engine.capacity.is_remote:
        # With the default, all workers of a machine would start one thread per processor.
        seeded.set_params(n_jobs=engine.capacity.threads_per_worker)
    return job, seeded


def describe_job(
    job: ImageJob, features: LocalFeatures, on_error: str
) -> Iterator[tuple[int, Rows | BadImage]]:
    """Yield the descriptors of each image of a job, or its problem, in order."""
    options: dict[str, Any] = {"on_error": on_error, "verbose": int(features.verbose)}
    for part, found, problems in job.run(
        describe_part, (features,), "Describing images", **options
    ):
        described: dict[int, Rows | BadImage] = {
            problem.index: problem for problem in problems if problem.index is not None
        }
        ragged = RaggedArray(found["values"], found["offsets"])
        described |= dict(zip((part.first + found["kept"]).tolist(), ragged, strict=True))
        yield from sorted(described.items())


def describe_part(part: ImagePart, features: LocalFeatures) -> Arrays:
    """Task: the descriptors of one part."""
    # Always "skip": which bad image is the first of the job is not known here.
    stream = features.iterate(part.sources, on_error="skip")
    found = collect(stream, features.n_features_out_, None)
    ragged: RaggedArray = found.features
    arrays = {"values": ragged.values, "offsets": ragged.offsets, "kept": found.kept}
    return {**arrays, **problem_arrays(found.problems)}
