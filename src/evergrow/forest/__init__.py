"""Forests whose classes grow."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evergrow.forest.axis import AxisForestClassifier
    from evergrow.forest.explain import AxisStep, Explanation, LinearStep, Step, TreePath
    from evergrow.forest.linear import LinearForestClassifier
    from evergrow.forest.ncm import NCMForestClassifier
    from evergrow.forest.report import UpdateReport
    from evergrow.forest.strategies import IGT, RTST, RUST, ULS
    from evergrow.forest.svm import SVMForestClassifier

__all__ = [
    "IGT",
    "RTST",
    "RUST",
    "ULS",
    "AxisForestClassifier",
    "AxisStep",
    "Explanation",
    "LinearForestClassifier",
    "LinearStep",
    "NCMForestClassifier",
    "SVMForestClassifier",
    "Step",
    "TreePath",
    "UpdateReport",
]

# Imported when first asked for: workers of a cluster grow trees without scikit-learn, which takes
# longer to import than many a tree to grow.
_HOMES = {
    "axis": ("AxisForestClassifier",),
    "explain": ("AxisStep", "Explanation", "LinearStep", "Step", "TreePath"),
    "linear": ("LinearForestClassifier",),
    "ncm": ("NCMForestClassifier",),
    "report": ("UpdateReport",),
    "strategies": ("IGT", "RTST", "RUST", "ULS"),
    "svm": ("SVMForestClassifier",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'evergrow.forest' has no attribute {name!r}")
    found = getattr(import_module(f"evergrow.forest.{_HOME_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *__all__})
