"""The look of the gallery's figures, set before each example is run."""

from pathlib import Path
from typing import Any

STYLE = Path(__file__).with_name("gallery.mplstyle")


def reset(gallery_conf: dict[str, Any], name: str) -> None:  # noqa: ARG001
    """Restore matplotlib's defaults and apply the style sheet."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("agg")
    mpl.rcdefaults()
    plt.style.use(STYLE)
