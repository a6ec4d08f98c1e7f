"""Random forests that learn new classes, update themselves and forget.

``NCMForestClassifier`` splits nodes by class means [Ristin2014]; the axis, linear and SVM forests
differ only in how nodes are split. Trees are grown, updated and read by the compiled core
(``cpp/``). This package decides what the core gets and keeps the result.

A call passes through these modules, each of which imports only those after it:

- ``forests``: the public classes and their parameters.
- ``learner`` (fit, partial_fit, forget) and ``predictor`` (predict, explain, save).
- ``change``: from one fitted value to the next. ``growth`` grows a forest and evicts samples,
  ``addition`` adds samples by an update strategy, ``removal`` and ``relabeling`` do what they say.
- ``cluster``: the same work in groups of trees on the workers of an engine.
- ``value``: the fitted forest, an immutable value that is replaced as a whole.
- ``request``: the parameters of one call, checked once and frozen. ``splits``, ``strategy`` and
  ``storage``: values that parameters may have, and what they mean for the core.

Start reading with ``learner.partial_fit``, then ``change.addition``. In the core,
``cpp/update/rust.cpp`` chooses the means and sides of RUST, ``cpp/update/tree_editor.cpp`` moves
the rows whose side changed, and ``cpp/tree/router.cpp`` routes a sample at a node.
"""

from evergrow.foundation.public_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__)
