"""Examples with weights: checked at the door, cut into blocks or parts, and added up."""

from evergrow.examples.adding import add_examples, add_picking
from evergrow.examples.checking import check_size, plain_batches, weighted
from evergrow.examples.passing import Mapping, mapped_batches

__all__ = [
    "Mapping",
    "add_examples",
    "add_picking",
    "check_size",
    "mapped_batches",
    "plain_batches",
    "weighted",
]
