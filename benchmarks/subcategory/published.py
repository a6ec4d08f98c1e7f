"""Figures that Ristin et al. (CVPR 2015) print, and where ours differ in order.

Their data are 387 classes of ILSVRC 2010 under 143 coarse ones as 1000 visual words, so only
relations can be compared, not percentages.
"""

from __future__ import annotations

from collections.abc import Mapping

from scipy.stats import t as student_t

from benchmarks.subcategory.results import Summary

__all__ = ["GUESSES", "TABLE_1", "TABLE_2", "TABLE_3", "TABLE_4", "TABLE_5", "disagreements"]

# Without and with a learnt metric.
TABLE_1 = {
    "class means": (7.24, 15.71),
    "5 neighbours": (11.20, 15.10),
    "plain": (17.58, 18.52),
    "regularised": (19.01, 19.79),
}

# No metric, one learnt on the coarse part, one learnt on the fine part.
TABLE_2 = {
    "class means": (7.14, 14.49, 16.30),
    "5 neighbours": (9.45, 12.33, 12.58),
    "fine-only": (16.96, 17.43, 18.54),
    "stacked": (17.56, 17.80, 18.83),
    "joint": (17.14, 17.44, 18.39),
    "nn": (17.93, 18.26, 19.29),
    "hierarchical": (18.35, 17.93, 19.20),
    "nn-h": (18.46, 18.48, 19.55),
}

# Fine labels of 10, 20 and 50 % of the samples; half of all come with coarse labels only.
TABLE_3 = {
    "fine-only": (12.04, 14.35, 16.96),
    "stacked": (12.92, 15.07, 17.56),
    "joint": (12.59, 14.89, 17.14),
    "nn": (13.99, 15.48, 17.93),
    "hierarchical": (14.16, 16.15, 18.35),
    "nn-h": (14.71, 16.37, 18.46),
}

# Coarse labels only of 10, 20 and 50 % of the samples; half of all come with fine labels.
TABLE_4 = {
    "fine-only": (16.96, 16.96, 16.96),
    "stacked": (17.18, 17.21, 17.56),
    "joint": (16.89, 16.80, 17.14),
    "nn": (17.27, 17.51, 17.93),
    "hierarchical": (17.59, 17.90, 18.35),
    "nn-h": (17.87, 18.13, 18.46),
}

# Accuracy on coarse classes.
TABLE_5 = {
    "coarse": (24.54,),
    "stacked": (22.35,),
    "joint": (21.99,),
    "nn": (24.19,),
    "hierarchical": (23.95,),
    "nn-h": (25.15,),
}

# Accuracy of a forest after guessing in these ways, sec. 5.2.1.
GUESSES = {
    "forest": (14.02,),
    "nn-unconstrained": (14.23,),
    "nn-discard": (17.03,),
    "nn": (17.52,),
}

_FEWEST_SEEDS = 3


def disagreements(
    ours: Mapping[str, Summary],
    printed: Mapping[str, tuple[float, ...]],
    column: int = 0,
    name: str = "accuracy",
) -> list[str]:
    """Pairs that the paper has in one order and we, clearly, in the other.

    Clearly is outside the 95 % interval of the difference over the seeds; fewer than three seeds
    make nothing clear.
    """
    found = []
    both = [key for key in printed if key in ours]
    for worse in both:
        for better in both:
            if printed[worse][column] >= printed[better][column]:
                continue
            difference = ours[worse].each(name) - ours[better].each(name)
            n = len(difference)
            if n < _FEWEST_SEEDS:
                continue
            error = float(difference.std(ddof=1)) / n**0.5
            if difference.mean() > float(student_t.ppf(0.975, n - 1)) * error:
                by = 100 * float(difference.mean())
                found.append(f"{worse} is {by:.2f} points above {better}; in the paper below")
    return found
