"""Reading any saved model back."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy.typing as npt

from evergrow.foundation.errors import ModelFileError
from evergrow.storage.files import read_model
from evergrow.storage.pipelines import READERS

# Which room has each estimator. Strings, not imports: estimators lie above this room.
_HOMES = {
    "evergrow.estimators": (
        "AxisForestClassifier",
        "LevelMetric",
        "LinearForestClassifier",
        "NCMClassifier",
        "NCMForestClassifier",
        "NCMMetric",
        "RLSClassifier",
        "RebalancedRLSClassifier",
        "RejectingClassifier",
        "SVMForestClassifier",
        "SubcategoryForestClassifier",
    ),
    "evergrow.vision": (
        "BagOfWords",
        "ERCForest",
        "Embedder",
        "FisherVectors",
        "HierarchicalKMeans",
        "ImageClassifier",
        "KMeansCodebook",
        "LocalFeatures",
        "RandomKDTrees",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that was written with ``save`` or :func:`evergrow.save`.

    Nothing in the file is executed: arrays and JSON only, checked against a SHA-256 checksum and
    against each other before use.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    estimator : estimator
        Ready to predict, with the parameters it was saved with.

    Raises
    ------
    evergrow.ModelFileError
        If the file is truncated, damaged, inconsistent or from a newer version.

    Examples
    --------
    >>> import evergrow, tempfile, os
    >>> forest = evergrow.NCMForestClassifier(3, min_samples_leaf=1, random_state=0)
    >>> forest = forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     forest.save(os.path.join(folder, "model.evergrow"))
    ...     evergrow.load(os.path.join(folder, "model.evergrow")).n_estimators
    3
    """
    header, tensors = read_model(path)
    try:
        return _build(header, tensors)
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r}: {error}") from error
    except RecursionError as error:
        raise ModelFileError(f"{str(path)!r} holds too many models inside each other") from error
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"{str(path)!r} has damaged parameters: {error}") from error


def _build(header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]) -> Any:
    reader = _reader(str(header.get("estimator")))
    if reader is None:
        raise ModelFileError(
            f"it holds an unknown estimator {header.get('estimator')!r}, "
            f"this version knows {sorted({*_HOME_OF, *READERS})}"
        )
    return reader._from_file(header, tensors, _build)


def _reader(name: str) -> Any:
    """What reads the files of an estimator; None if its name is not known."""
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    return READERS.get(name)
