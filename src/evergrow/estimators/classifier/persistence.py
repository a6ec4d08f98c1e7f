"""Model persistence: the one ``save`` of all estimators."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy.typing as npt

from evergrow.storage.models.format import write_model

Header = dict[str, Any]
Tensors = dict[str, npt.NDArray[Any]]
ModelContent = tuple[Header, Tensors]


class SaveMixin:
    """Adds ``save``; subclasses say what is in the file."""

    def _to_file(self) -> ModelContent:
        """Return header and arrays, for a file of its own or inside the file of another model."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that :func:`evergrow.load` reads.

        A loaded model continues to learn as if it had never been saved. Only Evergrow's own
        estimators can be saved: loading a model file never executes anything in it.

        Parameters
        ----------
        path : path
            File to write. An existing one is replaced by the complete new one, or stays as it is
            if writing fails.

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


class InferenceSaveMixin(SaveMixin):
    """Adds a ``save`` that can also write a smaller file which only predicts."""

    def _to_file(self, *, inference_only: bool = False) -> ModelContent:
        """Return header and arrays; with ``inference_only`` only what predicting needs."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str], *, inference_only: bool = False) -> None:
        """Write the model to a file that :func:`evergrow.load` reads.

        Parameters
        ----------
        path : path
            File to write. An existing one is replaced by the complete new one, or stays as it is
            if writing fails.
        inference_only : bool, default=False
            Leave out everything that predicting does not need. The file is much smaller, but a
            model loaded from it cannot learn any more; only a forest can, with ``update="uls"``.

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
        with self._save_lock():
            write_model(path, *self._to_file(inference_only=inference_only))

    def _save_lock(self) -> AbstractContextManager[None]:
        """Return a lock to hold while the file is written, for models that read files meanwhile."""
        return nullcontext()
