"""Model persistence: the one ``save`` of all estimators."""

from __future__ import annotations

import copyreg
import os
import tempfile
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy.typing as npt
from sklearn.exceptions import NotFittedError

from evergrow.foundation.errors import EvergrowError
from evergrow.storage.models.codec import decode, encode
from evergrow.storage.models.format import write_model
from evergrow.storage.models.header import (
    Build,
    common_header,
    feature_names,
    parameters_of,
    plain_parameters,
    with_values,
)
from evergrow.storage.models.loader import load

Header = dict[str, Any]
Tensors = dict[str, npt.NDArray[Any]]
ModelContent = tuple[Header, Tensors]

# The key of the content of a model file in the state of an estimator.
_CONTENT = "model_file"
# What set_output was called with, which is not in model files.
_OUTPUT = "_sklearn_output_config"


class SaveMixin:
    """Adds ``save``; subclasses say what is in the file."""

    def _to_file(self) -> ModelContent:
        """Return header and arrays, for a file of its own or inside the file of another model."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that :func:`evergrow.load` reads.

        A loaded model can continue to learn. Only estimators of Evergrow can be saved, because
        model files contain no code: loading a file never executes anything in it. See
        :doc:`/model_files`.

        Parameters
        ----------
        path : path
            File to write, usually named ``.evergrow``. An existing file is replaced only when the
            new one is complete.

        Examples
        --------
        >>> import evergrow, tempfile, os
        >>> means = evergrow.NCMClassifier().fit([[0], [1], [8], [9]], [0, 0, 1, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.evergrow")
        ...     means.save(path)
        ...     evergrow.load(path).predict([[9]])
        array([1])
        """
        write_model(path, *self._to_file())

    def __getstate__(self) -> dict[str, Any]:
        """Return what skops stores: the content of a model file, whose types are all safe.

        An estimator that cannot be saved is stored as its attributes, as any other.
        """
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "model.evergrow")
                self.save(path)
                content = path.read_bytes()
        except (EvergrowError, NotFittedError):
            return self._attributes()
        output = {name: vars(self)[name] for name in (_OUTPUT,) if name in vars(self)}
        return {_CONTENT: content, **output}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over attributes, or the content of a model file."""
        if _CONTENT not in state:
            cast(Any, super()).__setstate__(state)
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.evergrow")
            path.write_bytes(state[_CONTENT])
            attributes = vars(load(path, expect=type(self)))
        self.__dict__ = {**attributes, **{k: v for k, v in state.items() if k != _CONTENT}}

    def _attributes(self) -> dict[str, Any]:
        """Return the attributes of a copy."""
        return cast("dict[str, Any]", cast(Any, super()).__getstate__())

    # pickle and copy ask the first of these; skops asks the second, and then for the state.
    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self),), self._attributes()  # type: ignore[attr-defined]

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self),)  # type: ignore[attr-defined]


class FittedSaveMixin(SaveMixin):
    """Adds a ``save`` that writes the parameters and the fitted value as the codec has it."""

    # The class of the fitted value.
    _kind: ClassVar[Any]
    _fitted: Any

    def _checked_to_save(self) -> Self:
        """Return a frozen copy of the estimator if it can be saved and loaded."""
        raise NotImplementedError

    def _to_file(self, *, inference_only: bool = False) -> ModelContent:
        reader = self._checked_to_save()
        # The file could not be loaded otherwise.
        reader._check_suits(reader._fitted)
        fitted, arrays = encode(reader._stored_value(inference_only))
        parameters = plain_parameters(reader._stored_parameters(inference_only))
        return {**common_header(reader, parameters), "fitted": fitted}, arrays

    def _check_suits(self, fitted: Any) -> None:
        """Raise a ``ValueError`` if a fitted value does not suit the parameters."""

    def _stored_value(self, inference_only: bool) -> Any:  # noqa: ARG002
        """Return the fitted value for a model file, perhaps only what predicting needs."""
        return self._fitted

    def _stored_parameters(self, inference_only: bool) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters for a model file."""
        return dict(cast(Any, self).get_params(deep=False))

    @classmethod
    def _from_file(cls, header: Header, tensors: Tensors, build: Build) -> Self:
        fitted = decode(cls._kind, header.get("fitted"), tensors, build)
        entries = with_values(parameters_of(header), getattr(cls, "_rules", {}))
        model: Any = cls(**cls._read_parameters(entries, fitted))
        model._check_parameters()
        model._check_suits(fitted)
        # Images have no features with names.
        names = feature_names(header, getattr(fitted, "n_features", 0))
        model._set_fitted(fitted, names)
        return cast("Self", model)

    @classmethod
    def _read_parameters(cls, entries: dict[str, Any], fitted: Any) -> dict[str, Any]:  # noqa: ARG003
        """Return the parameters of a model with a fitted value from their entries in a file."""
        return entries


class InferenceSaveMixin(SaveMixin):
    """Adds a ``save`` that can also write a smaller file which only predicts."""

    def save(self, path: str | os.PathLike[str], *, inference_only: bool = False) -> None:
        """Write the model to a file that :func:`evergrow.load` reads.

        A loaded model can continue to learn. Model files contain no code: loading a file never
        executes anything in it. See :doc:`/model_files`.

        Parameters
        ----------
        path : path
            File to write, usually named ``.evergrow``. An existing file is replaced only when the
            new one is complete.
        inference_only : bool, default=False
            Whether to store only what predictions need. A model loaded from such a file cannot
            learn any more, except a forest with ``update="uls"``. For least squares, the file is
            much smaller. For a forest of class means it is only a little smaller, because with many
            trees nearly every sample is a class mean in some node (162 MB instead of 188 MB with 50
            trees on CIFAR-100 features).

        Examples
        --------
        >>> import evergrow, tempfile, os
        >>> model = evergrow.RLSClassifier(regularization=0.1, recoding=0.0)
        >>> model = model.fit([[0], [1], [8], [9]], [0, 0, 1, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.evergrow")
        ...     model.save(path, inference_only=True)
        ...     evergrow.load(path).predict([[9]])
        array([1])
        """
        write_model(path, *cast(Any, self)._to_file(inference_only=inference_only))
