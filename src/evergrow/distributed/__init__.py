"""The same work on many machines, and an estimate of what it needs.

``context`` is :func:`evergrow.cluster`. Inside its block, estimators give their jobs to
``ray_engine``, an :class:`evergrow.foundation.engine.Engine` over Ray. ``connection`` finds or
starts the cluster, ``dispatch`` submits parts and retries lost ones, ``actors`` leaves trees with
workers between updates, ``worker`` is the code that runs there, and ``checkpoints`` stores finished
parts in a folder to resume from. ``planning`` estimates memory and time before training.

Only this room imports Ray. Results are the same as without a cluster. Start reading with
``context``, then ``ray_engine``.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
