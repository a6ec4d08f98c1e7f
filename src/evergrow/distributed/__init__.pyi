from .block import cluster
from .planning import Cluster, Part, Plan, Seconds, Workload, plan

__all__ = ["Cluster", "Part", "Plan", "Seconds", "Workload", "cluster", "plan"]
