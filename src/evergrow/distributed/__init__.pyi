from .context import cluster
from .planning import Cluster, Part, Plan, Workload, plan

__all__ = ["Cluster", "Part", "Plan", "Workload", "cluster", "plan"]
