"""What training on images took."""

from __future__ import annotations

from dataclasses import dataclass

from evergrow.foundation.errors import BadImage

__all__ = ["ImageReport"]


@dataclass(frozen=True)
class ImageReport:
    """What one call of ``fit`` or ``partial_fit`` did.

    Attributes
    ----------
    n_images : int
        Images learnt.
    seconds_features : float
        Time to read the images and turn them into numbers, learning a vocabulary included.
    seconds_learning : float
        Time the learner took.
    problems : tuple of BadImage
        Images and files that were left out, and why.

    Examples
    --------
    >>> from evergrow.vision import ImageReport
    >>> ImageReport(n_images=200, seconds_features=2.5, seconds_learning=0.1).problems
    ()
    """

    n_images: int
    seconds_features: float
    seconds_learning: float
    problems: tuple[BadImage, ...] = ()
