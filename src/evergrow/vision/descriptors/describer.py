"""Local features as a parameter of other estimators: what may be given, how much is asked of it."""

from __future__ import annotations

from evergrow.vision.descriptors.local import LocalFeatures

__all__ = ["AnyLocalFeatures", "patches_per_image"]


class AnyLocalFeatures:
    """Local features, as a rule for parameters."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        return isinstance(value, LocalFeatures)

    def __str__(self) -> str:
        """Say what is allowed."""
        return "LocalFeatures(...)"


def patches_per_image(features: LocalFeatures, total: int, n_images: int) -> int:
    """How many patches of each image to learn from, for about ``total`` of them.

    Never more than describe an image later: what is learnt shall be like what it is used for, and
    who limits the patches expects no more of them.

    Examples
    --------
    >>> from evergrow.vision import LocalFeatures, RandomPatches
    >>> features = LocalFeatures(patches=RandomPatches(50))
    >>> patches_per_image(features, 100, 30), patches_per_image(features, 100_000, 30)
    (4, 50)
    """
    wanted = -(-total // max(1, n_images))
    most = features.patches.n
    return wanted if most is None else min(wanted, most)
