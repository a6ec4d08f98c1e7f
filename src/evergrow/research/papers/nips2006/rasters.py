"""Pictures as text, so that rows of a table can hold them."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evergrow.vision.images.extras import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["as_text", "from_text", "show", "smaller"]

Pixels = npt.NDArray[np.uint8]


def as_text(pixels: Pixels) -> str:
    """An image as a PNG file, written in letters.

    Examples
    --------
    >>> import numpy as np
    >>> grey = np.arange(6, dtype=np.uint8).reshape(2, 3)
    >>> from_text(as_text(grey)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    content = io.BytesIO()
    import_extra("PIL.Image").fromarray(pixels).save(content, "PNG", optimize=True)
    return base64.b64encode(content.getvalue()).decode("ascii")


def from_text(text: str) -> Pixels:
    """The pixels of such a text."""
    content = io.BytesIO(base64.b64decode(text))
    with import_extra("PIL.Image").open(content, formats=("PNG",)) as image:
        return np.asarray(image)


def smaller(pixels: Pixels, width: int, height: int) -> Pixels:
    """The image within so many pixels, its sides in proportion, in 32 shades of each colour.

    The eye hardly sees it, and the file is half as large.
    """
    image = import_extra("PIL.Image").fromarray(pixels)
    image.thumbnail((width, height))
    coarse: Pixels = np.asarray(image) // 8 * 8 + 4
    return coarse


def show(axes: Axes, pixels: npt.NDArray[Any], **options: Any) -> Any:
    """Draw an image as it is, without ticks; gives what a colour bar needs."""
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    # The pixels themselves go into the file, not more of them than there are.
    return axes.imshow(pixels, interpolation="none", **options)
