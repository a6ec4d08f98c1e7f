"""The same work on many machines, and what it will cost.

``block`` is :func:`evergrow.cluster`. Within such a block estimators hand their tasks to
``ray_engine``, an engine as :mod:`evergrow.foundation.engine` describes it, over Ray. ``dispatch``
sends tasks to workers and retries lost ones, ``keepers`` leaves values with workers between calls,
``keeping`` writes finished results to a folder to resume from. ``planning`` estimates memory and
time before training.

Only this room imports Ray. Tasks and arrays pass through; results are the same as without a
cluster. Start reading with ``block``, then ``ray_engine``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
