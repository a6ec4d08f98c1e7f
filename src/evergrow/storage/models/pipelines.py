"""Any model that Evergrow can save, alone or as a step of a scikit-learn pipeline."""

from __future__ import annotations

import os
from typing import Any

from sklearn.pipeline import Pipeline

from evergrow.foundation.errors import InvalidTypeError, ModelFileError
from evergrow.storage.models.format import write_model
from evergrow.storage.models.header import (
    Build,
    Tensors,
    arrays_inside,
    common_header,
    parameters_of,
)
from evergrow.storage.models.sklearn_steps import SUPPORTED_STEPS

# Steps that do nothing, as scikit-learn writes them.
_NOTHING = ("passthrough", None)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, or a pipeline of models, to a file that :func:`evergrow.load` reads.

    Parameters
    ----------
    model : estimator
        A fitted model of one of these types:

        - an estimator of Evergrow;
        - ``StandardScaler``, ``Normalizer``, ``PCA`` or ``LinearSVC`` of scikit-learn;
        - a :class:`sklearn.pipeline.Pipeline` of these, which may contain other such pipelines.

        Other types cannot be saved, because a model file contains no code and its reader must know
        every type in it.
    path : path
        File to write. An existing file is replaced only when the new one is complete.

    Raises
    ------
    TypeError
        If the type of the model, or of a step of it, is not in the list above.

    Examples
    --------
    >>> import evergrow, tempfile, os
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), evergrow.NCMClassifier())
    >>> model = model.fit([[0], [1], [8], [9]], ["a", "a", "b", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     evergrow.save(model, os.path.join(folder, "model.evergrow"))
    ...     evergrow.load(os.path.join(folder, "model.evergrow")).predict([[7]])
    array(['b'], dtype='<U1')
    """
    write_model(path, *to_file(model))


def to_file(model: Any) -> tuple[dict[str, Any], Tensors]:
    """Header and arrays of a model, for a file of its own or inside that of another one."""
    if type(model) is Pipeline:
        return _pipeline_to_file(model)
    codec = SUPPORTED_STEPS.get(type(model).__name__)
    if codec is not None and type(model) is codec.kind:
        return codec.to_file(model)
    if not type(model).__module__.startswith("evergrow.") or not hasattr(model, "_to_file"):
        raise InvalidTypeError(
            f"{type(model).__name__} cannot be saved: only Evergrow's own estimators, "
            f"{', '.join(SUPPORTED_STEPS)} of scikit-learn and pipelines of these can"
        )
    header, tensors = model._to_file()
    return header, tensors


def _pipeline_to_file(pipeline: Pipeline) -> tuple[dict[str, Any], Tensors]:
    if pipeline.transform_input is not None:
        raise InvalidTypeError("a pipeline with transform_input cannot be saved")
    steps: list[tuple[str, Any]] = []
    tensors: Tensors = {}
    for place, (name, step) in enumerate(pipeline.steps):
        if isinstance(step, (str, type(None))) and step in _NOTHING:
            steps.append((name, None))
            continue
        try:
            header, arrays = to_file(step)
        except TypeError as error:
            raise InvalidTypeError(f"step {name!r} of the pipeline: {error}") from error
        steps.append((name, header))
        tensors |= {f"{place}/{key}": array for key, array in arrays.items()}
    # Where results are cached is a matter of this machine.
    header = common_header(pipeline, {"verbose": bool(pipeline.verbose)})
    return {**header, "steps": steps}, tensors


class _PipelineReader:
    """Reads pipelines back, as estimators of Evergrow's read themselves."""

    @staticmethod
    def _from_file(header: dict[str, Any], tensors: Tensors, build: Build) -> Pipeline:
        parameters = parameters_of(header)
        if set(parameters) != {"verbose"} or type(parameters["verbose"]) is not bool:
            raise ModelFileError("the model file has unexpected parameters of a pipeline")
        steps: list[tuple[str, Any]] = []
        for place, (name, inside) in enumerate(_checked_entries(header.get("steps"))):
            if inside is None:
                steps.append((name, "passthrough"))
            elif isinstance(inside, dict):
                steps.append((name, build(inside, arrays_inside(tensors, f"{place}/"))))
            else:
                raise ModelFileError(f"the model file lacks step {name!r} of the pipeline")
        _check_follow(steps)
        return Pipeline(steps, **parameters)


def _checked_entries(entries: Any) -> list[tuple[str, Any]]:
    fine = isinstance(entries, list) and len(entries) > 0
    fine = fine and all(
        isinstance(entry, list) and len(entry) == 2 and type(entry[0]) is str for entry in entries
    )
    if not fine:
        raise ModelFileError("the model file lacks the steps of a pipeline")
    names = [name for name, _ in entries]
    reserved = {"steps", "memory", "verbose", "transform_input"}
    odd = [name for name in names if not name or "__" in name or name in reserved]
    if odd or len(set(names)) != len(names):
        raise ModelFileError("the model file names a step of a pipeline twice or not at all")
    return [(name, inside) for name, inside in entries]


def _check_follow(steps: list[tuple[str, Any]]) -> None:
    """Raise a ``ModelFileError`` unless each step takes what the one before it gives."""
    width = None
    for place, (name, step) in enumerate(steps):
        if isinstance(step, str):
            continue
        if place < len(steps) - 1 and not hasattr(step, "transform"):
            raise ModelFileError(f"step {name!r} of the pipeline in the file cannot transform")
        # The output width of an image step is unknown until it runs.
        takes = getattr(step, "n_features_in_", None)
        if takes is not None and width not in (None, takes):
            raise ModelFileError(
                f"the model file is inconsistent: step {name!r} takes {takes} features, "
                f"the one before it gives {width}"
            )
        known = takes is not None and hasattr(step, "get_feature_names_out")
        width = len(step.get_feature_names_out()) if known else None


READERS: dict[str, Any] = {"Pipeline": _PipelineReader, **SUPPORTED_STEPS}
