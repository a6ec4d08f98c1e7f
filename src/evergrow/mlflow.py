"""Evergrow's models in MLflow: ``log_model``, ``load_model`` and what else a flavour has.

The code is in :mod:`evergrow.integrations.mlflow`; logged models name this module.
"""

from evergrow.integrations.mlflow import (
    FLAVOR_NAME,
    _load_pyfunc,
    get_default_pip_requirements,
    infer_signature,
    load_model,
    log_evaluation,
    log_model,
    save_model,
)

__all__ = [
    "FLAVOR_NAME",
    "_load_pyfunc",
    "get_default_pip_requirements",
    "infer_signature",
    "load_model",
    "log_evaluation",
    "log_model",
    "save_model",
]
