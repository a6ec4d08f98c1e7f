"""Random forests that learn new classes, update themselves and forget.

``NCMForestClassifier`` splits nodes by class means [Ristin2014]; the axis, linear and SVM forests
differ only in how nodes are split. Trees are grown, updated and read by the compiled core
(``cpp/``). This package decides what the core gets and keeps the result.

A call passes through these modules, each of which imports only those after it:

- ``ncm_forest``, ``axis_forest``, ``linear_forest``, ``svm_forest``: one public class each, with
  its own parameters. ``parameters`` has those that all forests have.
- ``learner`` (fit, partial_fit, forget) and ``predictor`` (predict, explain, save).
- ``change``: from one fitted value to the next. ``growth`` grows a forest, ``addition`` adds
  samples by an update strategy, ``removal``, ``relabeling`` and ``eviction`` do what they say.
- ``cluster``: the same work in groups of trees on the workers of an engine.
- ``storage``: where training samples are stored, and what a memory limit allows.
- ``request``: the parameters of one call, checked once and frozen. ``splits`` turns them into the
  rules for the core, ``strategies`` lists the update strategies.
- ``value``: the fitted forest, an immutable value that is replaced as a whole.

Start reading with ``learner.partial_fit``, then ``change.addition``; what RUST does to a node is in
``cpp/update/rust.cpp``, and how a node routes a sample [Ristin2014 Eq. 6] in ``cpp/predict/``.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
