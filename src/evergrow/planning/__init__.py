"""What training will cost, before it is begun."""

from evergrow.planning.answer import Plan, Seconds
from evergrow.planning.planner import plan
from evergrow.planning.schedule import Part
from evergrow.planning.workload import Cluster, Workload

__all__ = ["Cluster", "Part", "Plan", "Seconds", "Workload", "plan"]
