"""Descriptors of images group by group, wherever the engine in use runs its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import snapshot
from evergrow.foundation.engine import Arrays, Engine, current_engine
from evergrow.foundation.errors import BadImage
from evergrow.foundation.ragged import RaggedArray
from evergrow.vision.descriptors.describing import seed_of
from evergrow.vision.descriptors.stacking import collect
from evergrow.vision.images.groups import ImageGroup, bad_arrays, done_in_order, image_groups
from evergrow.vision.images.many import check_sources

if TYPE_CHECKING:
    from evergrow.vision.descriptors.local import LocalFeatures

__all__ = ["IMAGES_PER_TASK", "describe_by_groups", "describe_group", "describing_groups"]

Rows = npt.NDArray[np.float32]

# Descriptors of one image may take megabytes.
IMAGES_PER_TASK = 16


def describing_groups(
    features: LocalFeatures, images: Iterable[Any]
) -> tuple[Engine, list[ImageGroup], LocalFeatures, list[Any]] | None:
    """An engine, groups of images, what describes them there, and the images.

    None where they are described here: without an engine, and for few images or those that are
    made on the way.
    """
    engine = current_engine()
    if engine is None or not isinstance(images, Sequence | np.ndarray):
        return None
    if len(images) <= IMAGES_PER_TASK:
        return None
    check_sources(images)
    features._check()
    sources = list(images)
    groups = image_groups(sources, most=IMAGES_PER_TASK, is_remote=engine.capacity.is_remote)
    # One seed for all images of a call, as without groups.
    seeded = snapshot(features).set_params(random_state=seed_of(features.random_state))
    if engine.capacity.is_remote:
        # Workers that share a machine would all start a thread per processor.
        seeded.set_params(n_jobs=engine.capacity.threads_per_worker)
    return engine, groups, seeded, sources


def describe_by_groups(
    engine: Engine,
    groups: Sequence[ImageGroup],
    features: LocalFeatures,
    sources: Sequence[Any],
    on_error: str,
) -> Iterator[tuple[int, Rows | BadImage]]:
    """Descriptors of each image, or why there are none, in order."""
    options: dict[str, Any] = {"on_error": on_error, "verbose": int(features.verbose)}
    for group, found, bad in done_in_order(
        engine, describe_group, groups, (features,), sources, what="Describing images", **options
    ):
        described: dict[int, Rows | BadImage] = {
            one.index: one for one in bad if one.index is not None
        }
        ragged = RaggedArray(found["values"], found["offsets"])
        described |= dict(zip((group.first + found["kept"]).tolist(), ragged, strict=True))
        yield from sorted(described.items())


def describe_group(group: ImageGroup, features: LocalFeatures) -> Arrays:
    """Descriptors of some images, one image after the other."""
    # Which bad image is the first of all to be an error is not known here.
    stream = features.iterate(group.sources, on_error="skip")
    found = collect(stream, features.n_features_out_, None)
    ragged: RaggedArray = found.features
    arrays = {"values": ragged.values, "offsets": ragged.offsets, "kept": found.kept}
    return {**arrays, **bad_arrays(found.problems)}
