"""Class-incremental streams: the protocol, learners on it, and what is measured.

A ``ClassStream`` says which classes arrive at which step; ``follow`` trains a learner step by step
and yields a ``Measured`` wherever the stream asks for one. Start reading with ``stream``.
"""

from evergrow.research.streams.evaluation import (
    Learner,
    Measured,
    Retrained,
    follow,
    forgetting,
    model_bytes,
    relative_accuracy,
)
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
