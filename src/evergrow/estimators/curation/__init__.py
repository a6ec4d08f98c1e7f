"""Care for the data: what may be wrong with labels, and which examples to label next.

``label_issues`` and ``next_to_label`` are the public functions. ``wrong_labels``, ``duplicates``
and ``harm`` are the three kinds of issues; start with the first.
"""

from evergrow.estimators.curation.label_issues import (
    DuplicateGroup,
    HarmfulExample,
    LabelIssues,
    WrongLabel,
    label_issues,
)
from evergrow.estimators.curation.next_to_label import next_to_label

__all__ = [
    "DuplicateGroup",
    "HarmfulExample",
    "LabelIssues",
    "WrongLabel",
    "label_issues",
    "next_to_label",
]
