"""Examples with weights: checked at the door, cut into blocks or parts, and added up."""

from evergrow.estimators.sums.examples.adding import add_examples, add_picking
from evergrow.estimators.sums.examples.checking import check_size, plain_batches, weighted
from evergrow.estimators.sums.examples.passing import Mapping, mapped_batches

__all__ = [
    "Mapping",
    "add_examples",
    "add_picking",
    "check_size",
    "mapped_batches",
    "plain_batches",
    "weighted",
]
