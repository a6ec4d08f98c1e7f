"""What training will cost, before it is begun."""

from evergrow.distributed.planning.answer import Plan, Seconds
from evergrow.distributed.planning.planner import plan
from evergrow.distributed.planning.schedule import Part
from evergrow.distributed.planning.workload import Cluster, Workload

__all__ = ["Cluster", "Part", "Plan", "Seconds", "Workload", "plan"]
