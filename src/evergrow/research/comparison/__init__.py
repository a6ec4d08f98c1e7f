"""All our learners and others' on somebody's own features, and which of them to take."""

from evergrow.research.comparison.comparing import Comparison, compare
from evergrow.research.comparison.contender import Contender, Estimator
from evergrow.research.comparison.contenders import CONTENDERS, choose
from evergrow.research.comparison.measuring import measure
from evergrow.research.comparison.plan import Facts, Plan, make_plan
from evergrow.research.comparison.recommending import Advice, recommend, remarks_on
from evergrow.research.comparison.result import Result, Standing, difference

__all__ = [
    "CONTENDERS",
    "Advice",
    "Comparison",
    "Contender",
    "Estimator",
    "Facts",
    "Plan",
    "Result",
    "Standing",
    "choose",
    "compare",
    "difference",
    "make_plan",
    "measure",
    "recommend",
    "remarks_on",
]
