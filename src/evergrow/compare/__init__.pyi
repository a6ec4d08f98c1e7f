from .comparison import compare
from .data import Dataset, load_dataset
from .stream import (
    ClassStream,
    Measured,
    Retrained,
    follow,
    forgetting,
    model_bytes,
)

__all__ = [
    "ClassStream",
    "Dataset",
    "Measured",
    "Retrained",
    "compare",
    "follow",
    "forgetting",
    "load_dataset",
    "model_bytes",
]
