"""Examples held out to choose or calibrate by: every n-th of each class."""

from evergrow.held_out.choosing import Choice
from evergrow.held_out.keeping import HeldOut

__all__ = ["Choice", "HeldOut"]
