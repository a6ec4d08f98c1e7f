"""Evergrow inside the programs people already use, one module per program.

``river`` makes an Evergrow classifier one of river, which learns one example at a time, and a
classifier of river one of scikit-learn. ``mlflow`` is a flavour of MLflow whose artefact is a model
file; :mod:`evergrow.mlflow` is its short name. ``skops`` lists the types that skops may trust.
``river`` and ``mlflow`` import their program, so import the module, not this package. Start reading
with ``river``.
"""
