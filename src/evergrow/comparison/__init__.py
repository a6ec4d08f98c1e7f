"""All our learners and others' on somebody's own features, and which of them to take."""

from evergrow.comparison.comparing import Comparison, compare
from evergrow.comparison.contender import Contender, Estimator
from evergrow.comparison.contenders import CONTENDERS, choose
from evergrow.comparison.measuring import measure
from evergrow.comparison.plan import Facts, Plan, make_plan
from evergrow.comparison.recommending import Advice, recommend, remarks_on
from evergrow.comparison.result import Result, Standing, difference

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
