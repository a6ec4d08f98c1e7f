"""The photographs of the experiments, all of them, or a few drawn scenes."""

from __future__ import annotations

import io
from functools import cache

import numpy as np
import numpy.typing as npt

from benchmarks.measure import THREADS
from evergrow.research import ExperimentContext
from evergrow.research.papers.nips2006.photographs import PHOTOGRAPHS, Photographs, load

RGB = npt.NDArray[np.uint8]


@cache
def pictures(quick: bool) -> Photographs:
    """The folder ``caltech_images`` of EVERGROW_DATA; quickly, or without it, drawn scenes."""
    context = ExperimentContext({"photographs": PHOTOGRAPHS}, quick=quick, n_jobs=THREADS)
    everything = 10_000
    return load(context, "photographs", everything, 10 if quick else everything)


def as_jpeg(image: RGB) -> bytes:
    """An image as a file."""
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(image).save(content, "JPEG", quality=90)
    return content.getvalue()
