"""Examples held out to choose or calibrate by: every n-th of each class."""

from evergrow.estimators.sums.held_out.choosing import Choice
from evergrow.estimators.sums.held_out.keeping import HeldOut

__all__ = ["Choice", "HeldOut"]
