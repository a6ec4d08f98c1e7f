"""What training will need: time, memory and disk, before it is started.

:func:`plan` times a small run of the estimator on generated data (`trial`), scales it to the
requested size, adds what memory, disk and network require (`footprint`), and divides the work among
the workers of a cluster (`schedule`). The answer is a :class:`Plan`. Start reading at `planner`.
"""

from evergrow.distributed.planning.answer import Plan
from evergrow.distributed.planning.planner import plan
from evergrow.distributed.planning.schedule import Part
from evergrow.distributed.planning.workload import Cluster, Workload

__all__ = ["Cluster", "Part", "Plan", "Workload", "plan"]
