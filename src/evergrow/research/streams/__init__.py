"""Class-incremental streams: the protocol and its measures."""

from evergrow.research.streams.following import Learner, Retrained, follow
from evergrow.research.streams.measures import Measured, forgetting, model_bytes, relative_accuracy
from evergrow.research.streams.stream import ClassStream, Step

__all__ = [
    "ClassStream",
    "Learner",
    "Measured",
    "Retrained",
    "Step",
    "follow",
    "forgetting",
    "model_bytes",
    "relative_accuracy",
]
