# Functions that write a model's environment have no types in MLflow.
# mypy: allow-untyped-calls
"""A flavour of MLflow whose artefact is Evergrow's own model file.

A logged model is a folder: ``model.evergrow``, which :func:`evergrow.load` reads, and the YAML and
text files of MLflow. Nothing in it is pickled. The functions have the names and arguments of the
other flavours; ``evergrow.mlflow`` has them too.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from evergrow.estimators.classifier.persistence import SaveMixin
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.extras import __version__, install_command
from evergrow.storage.models.loader import load
from evergrow.storage.models.pipelines import save

try:
    import mlflow
    import yaml
    from mlflow.models import Model, ModelSignature
    from mlflow.models.model import MLMODEL_FILE_NAME, ModelInfo
    from mlflow.models.utils import _save_example
    from mlflow.tracking.artifact_utils import _download_artifact_from_uri
    from mlflow.types import ColSpec, DataType, Schema, TensorSpec
    from mlflow.utils.environment import (
        _CONDA_ENV_FILE_NAME,
        _CONSTRAINTS_FILE_NAME,
        _PYTHON_ENV_FILE_NAME,
        _REQUIREMENTS_FILE_NAME,
        _process_conda_env,
        _process_pip_requirements,
        _PythonEnv,
        _validate_env_arguments,
    )
    from mlflow.utils.model_utils import _validate_and_prepare_target_save_path
except ImportError as error:
    raise ImportError(
        f"evergrow.mlflow needs MLflow: {install_command('integrations', 'mlflow')}"
    ) from error

FLAVOR_NAME = "evergrow"

# The module that MLflow imports to load a model.
_LOADER = "evergrow.mlflow"
_FILE = "model.evergrow"
# What a model in MLflow may be asked; the first that the model has is the default.
_METHODS = ("predict", "transform", "predict_proba", "predict_log_proba", "decision_function")
_TOP = 5


def get_default_pip_requirements(model: Any = None) -> list[str]:
    """Return what a logged model needs: this version of Evergrow, with its vision for images."""
    extra = "[vision]" if model is not None and _takes_images(model) else ""
    return [f"evergrow{extra}=={__version__}"]


def infer_signature(model: Any, method: str | None = None) -> ModelSignature:
    """Return the MLflow signature of a fitted model: the types of its inputs and outputs.

    Parameters
    ----------
    model : estimator or Pipeline
        The fitted model.
    method : str, default=None
        The method that MLflow calls, as `pyfunc_predict_fn` of :func:`save_model`.

    Returns
    -------
    signature : mlflow.models.ModelSignature
        Inputs are the named features of the training data, a matrix if they had no names, or images
        as bytes. Outputs are classes or numbers.
    """
    method = _checked_method(model, method)
    names = getattr(model, "feature_names_in_", None)
    if _takes_images(model):
        inputs = Schema([ColSpec(DataType.binary, "image")])
    elif names is not None:
        inputs = Schema([ColSpec(DataType.double, str(name)) for name in names])
    else:
        inputs = Schema([TensorSpec(np.dtype(np.float64), (-1, int(model.n_features_in_)))])
    if method == "predict":
        kind = np.asarray(model.classes_).dtype
        output = TensorSpec(np.dtype(np.str_) if kind.kind in "UO" else kind, (-1,))
    else:
        output = TensorSpec(np.dtype(np.float64), (-1, -1))
    return ModelSignature(inputs, Schema([output]))


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    pyfunc_predict_fn: str | None = None,
    conda_env: Any = None,
    mlflow_model: Model | None = None,
    signature: ModelSignature | None = None,
    input_example: Any = None,
    pip_requirements: Any = None,
    extra_pip_requirements: Any = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted model to a new folder in MLflow's format.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of Evergrow, or a pipeline that :func:`evergrow.save` can write.
    path : path
        The folder. It must be empty or not exist.
    pyfunc_predict_fn : str, default=None
        The method that MLflow calls when the model is served: ``"predict"``, ``"predict_proba"``,
        ``"predict_log_proba"``, ``"decision_function"`` or ``"transform"``. None uses ``predict``,
        or ``transform`` for a model that does not predict.
    conda_env : dict or str, default=None
        Conda environment of the model, as in other MLflow flavors.
    mlflow_model : mlflow.models.Model, default=None
        The MLflow model that this flavor is added to. None creates one.
    signature : mlflow.models.ModelSignature, default=None
        Inputs and outputs of the model. None uses :func:`infer_signature`.
    input_example : array-like or DataFrame, default=None
        Some inputs to store with the model.
    pip_requirements : list of str or str, default=None
        Packages that the model needs. None is this version of Evergrow.
    extra_pip_requirements : list of str or str, default=None
        Packages that the model needs in addition.
    metadata : mapping, default=None
        Further entries for the description of the model.

    Examples
    --------
    >>> import evergrow
    >>> from evergrow.mlflow import load_model, save_model
    >>> model = evergrow.NCMClassifier().fit([[0], [9]], ["near", "far"])
    >>> save_model(model, "near_or_far")  # doctest: +SKIP
    >>> load_model("near_or_far").predict([[8]])  # doctest: +SKIP
    array(['far'], dtype='<U4')
    """
    _validate_env_arguments(conda_env, pip_requirements, extra_pip_requirements)
    method = _checked_method(model, pyfunc_predict_fn)
    check_is_fitted(model)
    described = Model() if mlflow_model is None else mlflow_model
    described.signature = infer_signature(model, method) if signature is None else signature
    if metadata is not None:
        described.metadata = dict(metadata)
    if conda_env is None:
        defaults = get_default_pip_requirements(model) if pip_requirements is None else None
        environment = _process_pip_requirements(defaults, pip_requirements, extra_pip_requirements)
    else:
        environment = _process_conda_env(conda_env)
    folder = Path(path).absolute()
    is_new = not folder.exists()
    _validate_and_prepare_target_save_path(str(folder))
    try:
        save(model, folder / _FILE)
        if input_example is not None:
            _save_example(described, input_example, str(folder))
        _describe(described, model, method, folder)
        _write_environment(folder, *environment)
    except BaseException:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _describe(described: Model, model: Any, method: str, folder: Path) -> None:
    """Write the description of the model, in which MLflow finds how to load it."""
    mlflow.pyfunc.add_to_model(
        described,
        loader_module=_LOADER,
        data=_FILE,
        conda_env=_CONDA_ENV_FILE_NAME,
        python_env=_PYTHON_ENV_FILE_NAME,
    )
    described.add_flavor(
        FLAVOR_NAME,
        evergrow_version=__version__,
        estimator=type(model).__name__,
        data=_FILE,
        predict_fn=method,
    )
    described.model_size_bytes = (folder / _FILE).stat().st_size
    described.save(str(folder / MLMODEL_FILE_NAME))


def _write_environment(
    folder: Path, conda_env: Any, packages: list[str], constraints: list[str] | None
) -> None:
    conda = yaml.safe_dump(conda_env, default_flow_style=False)
    (folder / _CONDA_ENV_FILE_NAME).write_text(conda, encoding="utf-8")
    (folder / _REQUIREMENTS_FILE_NAME).write_text("\n".join(packages), encoding="utf-8")
    if constraints:
        text = "\n".join(constraints)
        (folder / _CONSTRAINTS_FILE_NAME).write_text(text, encoding="utf-8")
    _PythonEnv.current().to_yaml(str(folder / _PYTHON_ENV_FILE_NAME))


def log_model(
    model: Any,
    name: str = "model",
    *,
    pyfunc_predict_fn: str | None = None,
    registered_model_name: str | None = None,
    signature: ModelSignature | None = None,
    input_example: Any = None,
    conda_env: Any = None,
    pip_requirements: Any = None,
    extra_pip_requirements: Any = None,
    metadata: Mapping[str, Any] | None = None,
    **options: Any,
) -> ModelInfo:
    """Log a fitted model to the current MLflow run.

    Parameters
    ----------
    model : estimator or Pipeline
        The fitted model, as in :func:`save_model`.
    name : str, default="model"
        Name of the model in MLflow.
    pyfunc_predict_fn : str, default=None
        The method that MLflow calls when the model is served, as in :func:`save_model`.
    registered_model_name : str, default=None
        Name under which the model is also registered. None does not register it.
    signature : mlflow.models.ModelSignature, default=None
        Inputs and outputs of the model. None uses :func:`infer_signature`.
    input_example : array-like or DataFrame, default=None
        Some inputs to store with the model.
    conda_env : dict or str, default=None
        Conda environment of the model.
    pip_requirements : list of str or str, default=None
        Packages that the model needs. None is this version of Evergrow.
    extra_pip_requirements : list of str or str, default=None
        Packages that the model needs in addition.
    metadata : mapping, default=None
        Further entries for the description of the model.
    **options
        Further arguments of ``mlflow.models.Model.log``, such as ``params`` and ``tags``.

    Returns
    -------
    info : mlflow.models.model.ModelInfo
        Information about the model. Pass its ``model_uri`` to :func:`load_model`.
    """
    return cast(
        "ModelInfo",
        Model.log(
            artifact_path=None,
            name=name,
            flavor=sys.modules[__name__],
            registered_model_name=registered_model_name,
            metadata=metadata,
            model=model,
            pyfunc_predict_fn=pyfunc_predict_fn,
            signature=signature,
            input_example=input_example,
            conda_env=conda_env,
            pip_requirements=pip_requirements,
            extra_pip_requirements=extra_pip_requirements,
            **options,
        ),
    )


def load_model(model_uri: str, dst_path: str | None = None, **options: Any) -> Any:
    """Load a logged model as an estimator.

    Parameters
    ----------
    model_uri : str
        Where the model is: ``models:/name/version``, ``runs:/...`` or a folder.
    dst_path : str, default=None
        A folder to download the model to. None uses a temporary folder.
    **options
        Arguments of :func:`evergrow.load`: ``expect``, ``max_bytes`` and ``networks``.

    Returns
    -------
    model : estimator or Pipeline
        The fitted model, which can predict and learn.
    """
    folder = _download_artifact_from_uri(artifact_uri=model_uri, output_path=dst_path)
    # The name of the file is not taken from the description, which could name any file.
    return load(Path(folder, _FILE), **options)


def log_evaluation(model: Any, X: Any, y: npt.ArrayLike, *, prefix: str = "") -> dict[str, float]:
    """Measure a classifier and log the metrics to the current MLflow run.

    Parameters
    ----------
    model : classifier
        A fitted classifier of features or of images.
    X : array-like
        The inputs of the model.
    y : array-like of shape (n_samples,)
        The true classes.
    prefix : str, default=""
        Prefix of the name of each metric, such as ``"test_"``.

    Returns
    -------
    metrics : dict
        The logged metrics:

        - ``accuracy``: share of right predictions;
        - ``mean_class_accuracy``: mean of the accuracies of all classes;
        - ``top5``: share of samples whose class is among the five best, if the model ranks classes;
        - ``n_right``: number of right predictions;
        - ``n_rejected``: number of predictions "unknown";
        - ``n_samples``: number of samples.
    """
    truth = np.asarray(y)
    if truth.ndim != 1 or not len(truth):
        raise InvalidInputError(f"y must be a list of classes, got the shape {truth.shape}")
    found = np.asarray(model.predict(X))
    right = found == truth
    by_class = [right[truth == name].mean() for name in np.unique(truth)]
    metrics = {
        "accuracy": float(right.mean()),
        "mean_class_accuracy": float(np.mean(by_class)),
        "n_right": float(right.sum()),
        "n_rejected": float((~np.isin(found, model.classes_)).sum()),
        "n_samples": float(len(truth)),
    }
    if hasattr(model, "predict_top_k"):
        best = model.predict_top_k(X, k=min(_TOP, len(model.classes_)))
        metrics["top5"] = float((best == truth[:, None]).any(axis=1).mean())
    metrics = {f"{prefix}{name}": value for name, value in metrics.items()}
    mlflow.log_metrics(metrics)
    return metrics


def _load_pyfunc(path: str) -> _ServedModel:
    """Load a model for ``mlflow.pyfunc``, which calls this with the path of the model file."""
    described = Model.load(str(Path(path).parent / MLMODEL_FILE_NAME))
    model = load(path)
    return _ServedModel(model, _checked_method(model, described.flavors[FLAVOR_NAME]["predict_fn"]))


class _ServedModel:
    """A model as MLflow serves it: tables and matrices in, one method that answers."""

    def __init__(self, model: Any, method: str) -> None:
        self._model, self._method = model, method

    def get_raw_model(self) -> Any:
        """Return the estimator."""
        return self._model

    def predict(self, data: Any, params: Mapping[str, Any] | None = None) -> Any:  # noqa: ARG002
        """Answer for the rows of a table or matrix, or for images in a column."""
        model = self._model
        if _takes_images(model):
            data = _images(data)
        elif getattr(model, "feature_names_in_", None) is None:
            data = np.asarray(data)
        return getattr(model, self._method)(data)


def _images(data: Any) -> list[bytes]:
    """Return the images of a column; only bytes, for a name could be that of any file here."""
    columns = data.to_numpy() if hasattr(data, "to_numpy") else np.asarray(data, dtype=object)
    columns = columns.reshape(len(columns), -1)
    if columns.shape[1] != 1:
        raise InvalidInputError(f"images must be one column of bytes, got {columns.shape[1]}")
    images: list[bytes] = columns[:, 0].tolist()
    if not all(isinstance(image, bytes) for image in images):
        raise InvalidTypeError("images must be bytes, the content of image files")
    return images


def _takes_images(model: Any) -> bool:
    first = model[0] if isinstance(model, Pipeline) else model
    return not get_tags(first).input_tags.two_d_array


def _checked_method(model: Any, method: str | None) -> str:
    """Return the method that answers, by default the first of all that the model has."""
    last = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(last, SaveMixin) and not isinstance(model, Pipeline):
        raise InvalidTypeError(f"model must be an estimator of Evergrow, got {model!r}")
    able = [name for name in _METHODS if hasattr(model, name)]
    if method is None:
        method = able[0]
    if method not in able:
        raise InvalidInputError(
            f"pyfunc_predict_fn must be one of {able} for a {type(model).__name__}, got {method!r}"
        )
    return method
