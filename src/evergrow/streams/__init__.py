"""Class-incremental streams: the protocol, the measures and the data sets."""

from evergrow.streams.built_in import digits, mixture, spirals
from evergrow.streams.dataset import Dataset
from evergrow.streams.downloading import download
from evergrow.streams.following import Learner, Retrained, follow
from evergrow.streams.measures import Measured, forgetting, model_bytes, relative_accuracy
from evergrow.streams.reading import load_dataset
from evergrow.streams.stream import ClassStream, Step

__all__ = [
    "ClassStream",
    "Dataset",
    "Learner",
    "Measured",
    "Retrained",
    "Step",
    "digits",
    "download",
    "follow",
    "forgetting",
    "load_dataset",
    "mixture",
    "model_bytes",
    "relative_accuracy",
    "spirals",
]
