"""Work on the workers of a cluster."""

from evergrow.distributed.block import cluster

__all__ = ["cluster"]
