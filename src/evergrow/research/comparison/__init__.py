"""Compare incremental learners on a user's features and recommend one.

``compare`` trains each learner of ``learners`` on the stream that ``setup`` chooses.
``measurement`` runs one learner and returns a ``Result``; a ``Standing`` summarises a learner over
all class orders. ``recommendation`` turns standings into advice. ``table``, ``charts`` and ``page``
present them, and ``files`` writes the page, the CSV table and the JSON record. Start reading with
``comparison``.
"""

from evergrow.research.comparison.comparison import Comparison, compare
from evergrow.research.comparison.learners import LEARNERS, ComparedLearner, Estimator, choose
from evergrow.research.comparison.measurement import measure
from evergrow.research.comparison.recommendation import Advice, recommend, remarks_on
from evergrow.research.comparison.result import Result, Standing, difference
from evergrow.research.comparison.setup import ComparisonSetup, Facts, make_setup

__all__ = [
    "LEARNERS",
    "Advice",
    "ComparedLearner",
    "Comparison",
    "ComparisonSetup",
    "Estimator",
    "Facts",
    "Result",
    "Standing",
    "choose",
    "compare",
    "difference",
    "make_setup",
    "measure",
    "recommend",
    "remarks_on",
]
