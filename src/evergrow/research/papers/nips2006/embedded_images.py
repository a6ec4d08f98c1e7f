"""Images as text, so that rows of a table can hold them."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.research import experiments as ex
from evergrow.vision.images.sources import import_extra

Pixels = npt.NDArray[np.uint8]


def encode(pixels: Pixels) -> str:
    """Encode an image as base64 text of a PNG file.

    Examples
    --------
    >>> import numpy as np
    >>> grey = np.arange(6, dtype=np.uint8).reshape(2, 3)
    >>> decode(encode(grey)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    content = io.BytesIO()
    import_extra("PIL.Image").fromarray(pixels).save(content, "PNG", optimize=True)
    return base64.b64encode(content.getvalue()).decode("ascii")


def decode(text: str) -> Pixels:
    """Decode the pixels of an encoded image."""
    content = io.BytesIO(base64.b64decode(text))
    with import_extra("PIL.Image").open(content, formats=("PNG",)) as image:
        return np.asarray(image)


def shrink(pixels: Pixels, width: int, height: int) -> Pixels:
    """Shrink an image to at most this size, with 32 levels of each colour.

    The reduced levels are hardly visible, and the file is half as large.
    """
    image = import_extra("PIL.Image").fromarray(pixels)
    image.thumbnail((width, height))
    return np.asarray(np.asarray(image) // 8 * 8 + 4)


def show(axes: ex.Axes, pixels: npt.NDArray[Any], **options: Any) -> Any:
    """Draw an image without ticks; returns what a colour bar needs."""
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    # Without interpolation, the file holds no more pixels than the image.
    return axes.imshow(pixels, interpolation="none", **options)
