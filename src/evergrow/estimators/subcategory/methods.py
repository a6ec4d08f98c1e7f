"""The methods of learning from coarse and fine labels together [Ristin2015 Sec. 4]."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """How a method uses samples of which only the coarse class is known.

    Attributes
    ----------
    objective : str
        What the core maximises when it splits a node.
    reading : str
        How the core computes probabilities from the class counts of a leaf.
    keeps_coarse_only : bool
        Train on samples without a fine label, given or guessed; otherwise they are left out.
    guesser : str or None
        How missing fine labels are guessed.
    coarse_weight : float
        Weight of separating coarse classes, lambda in [Ristin2015 Eq. 6].
    coarse_means : bool
        Nodes may compare with means of coarse classes.
    is_stacked : bool
        A first forest, of coarse classes, adds its probabilities to the features.
    """

    objective: str
    reading: str
    keeps_coarse_only: bool
    guesser: str | None = None
    coarse_weight: float = 0.0
    coarse_means: bool = False
    is_stacked: bool = False

    @property
    def can_refine(self) -> bool:
        """Whether samples without a fine label are stored and can get one later."""
        return self.keeps_coarse_only or self.guesser is not None

    def shares_forest_with(self, other: Method) -> bool:
        """Whether either method can update a forest of the other."""
        return (self.objective, self.can_refine, self.is_stacked) == (
            other.objective,
            other.can_refine,
            other.is_stacked,
        )


# If all samples have fine labels, the reading "joint" gives class frequencies.
METHODS: dict[str, Method] = {
    "fine-only": Method("gain", "joint", keeps_coarse_only=False),
    "stacked": Method("gain", "joint", keeps_coarse_only=False, is_stacked=True),
    "joint": Method("joint", "joint", True, coarse_weight=0.1, coarse_means=True),
    "nn": Method("gain", "joint", keeps_coarse_only=False, guesser="nn"),
    "hierarchical": Method("hierarchical", "hierarchical", True, None, 1.0, True),
    "nn-h": Method("hierarchical", "hierarchical", True, "nn", 1.0, True),
    "ridge-h": Method("hierarchical", "hierarchical", True, "ridge", 1.0, True),
}
