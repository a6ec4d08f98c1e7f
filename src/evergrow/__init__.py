"""Image classifiers whose set of classes never stops growing."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evergrow.errors import (
    BadImageWarning,
    CacheWarning,
    ClusterError,
    ClusterWarning,
    DatasetError,
    DatasetWarning,
    ImageError,
    ModelFileError,
    ServiceError,
    ShardError,
    WorkspaceError,
)
from evergrow.version import __version__

if TYPE_CHECKING:
    from evergrow.client import Client
    from evergrow.codebook import ERCForest
    from evergrow.distributed import cluster
    from evergrow.features import Embedder
    from evergrow.forest import (
        IGT,
        RTST,
        RUST,
        ULS,
        AxisForestClassifier,
        Explanation,
        LinearForestClassifier,
        NCMForestClassifier,
        SVMForestClassifier,
        UpdateReport,
    )
    from evergrow.imaging import ImageClassifier
    from evergrow.linear import RLSClassifier
    from evergrow.loading import load
    from evergrow.means import NCMClassifier, NCMMetric
    from evergrow.novelty import RejectingClassifier
    from evergrow.pipelines import save
    from evergrow.planning import Plan, plan
    from evergrow.shards import Shards, open_shards, write_shards
    from evergrow.subcategory import SubcategoryForestClassifier

__all__ = [
    "IGT",
    "RTST",
    "RUST",
    "ULS",
    "AxisForestClassifier",
    "BadImageWarning",
    "CacheWarning",
    "Client",
    "ClusterError",
    "ClusterWarning",
    "DatasetError",
    "DatasetWarning",
    "ERCForest",
    "Embedder",
    "Explanation",
    "ImageClassifier",
    "ImageError",
    "LinearForestClassifier",
    "ModelFileError",
    "NCMClassifier",
    "NCMForestClassifier",
    "NCMMetric",
    "Plan",
    "RLSClassifier",
    "RejectingClassifier",
    "SVMForestClassifier",
    "ServiceError",
    "ShardError",
    "Shards",
    "SubcategoryForestClassifier",
    "UpdateReport",
    "WorkspaceError",
    "__version__",
    "cluster",
    "load",
    "open_shards",
    "plan",
    "save",
    "write_shards",
]

# Where each public name comes from. It is imported when it is first asked for: scikit-learn alone
# takes seconds, and the command line answers --help without it.
_HOMES = {
    "evergrow.client": ("Client",),
    "evergrow.codebook": ("ERCForest",),
    "evergrow.distributed": ("cluster",),
    "evergrow.features": ("Embedder",),
    "evergrow.forest": (
        "AxisForestClassifier",
        "Explanation",
        "IGT",
        "LinearForestClassifier",
        "NCMForestClassifier",
        "RTST",
        "RUST",
        "SVMForestClassifier",
        "ULS",
        "UpdateReport",
    ),
    "evergrow.imaging": ("ImageClassifier",),
    "evergrow.linear": ("RLSClassifier",),
    "evergrow.loading": ("load",),
    "evergrow.means": ("NCMClassifier", "NCMMetric"),
    "evergrow.novelty": ("RejectingClassifier",),
    "evergrow.pipelines": ("save",),
    "evergrow.planning": ("Plan", "plan"),
    "evergrow.shards": ("Shards", "open_shards", "write_shards"),
    "evergrow.subcategory": ("SubcategoryForestClassifier",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = (
    "client",
    "codebook",
    "features",
    "forest",
    "imaging",
    "linear",
    "means",
    "novelty",
    "pipelines",
    "shards",
    "streams",
    "subcategory",
)


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name in _MODULES:
        return import_module(f"evergrow.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'evergrow' has no attribute {name!r}")
    found = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *__all__, *_MODULES})
