"""Reading any saved model back."""

from __future__ import annotations

import os
from typing import Any

import numpy.typing as npt

from evergrow.codebook import (
    BagOfWords,
    ERCForest,
    HierarchicalKMeans,
    KMeansCodebook,
    RandomKDTrees,
)
from evergrow.errors import ModelFileError
from evergrow.features import Embedder, FisherVectors, LocalFeatures
from evergrow.files import read_model
from evergrow.forest import (
    AxisForestClassifier,
    LinearForestClassifier,
    NCMForestClassifier,
    SVMForestClassifier,
)
from evergrow.imaging import ImageClassifier
from evergrow.linear import RebalancedRLSClassifier, RLSClassifier
from evergrow.means import NCMClassifier, NCMMetric
from evergrow.novelty import RejectingClassifier
from evergrow.pipelines import READERS
from evergrow.subcategory import LevelMetric, SubcategoryForestClassifier

__all__ = ["load"]

_ESTIMATORS: dict[str, Any] = {
    estimator.__name__: estimator
    for estimator in (
        AxisForestClassifier,
        BagOfWords,
        Embedder,
        ERCForest,
        FisherVectors,
        HierarchicalKMeans,
        ImageClassifier,
        KMeansCodebook,
        LevelMetric,
        LinearForestClassifier,
        LocalFeatures,
        NCMClassifier,
        NCMForestClassifier,
        RandomKDTrees,
        RebalancedRLSClassifier,
        RejectingClassifier,
        RLSClassifier,
        NCMMetric,
        SubcategoryForestClassifier,
        SVMForestClassifier,
    )
} | READERS


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
    estimator = _ESTIMATORS.get(str(header.get("estimator")))
    if estimator is None:
        raise ModelFileError(
            f"it holds an unknown estimator {header.get('estimator')!r}, "
            f"this version knows {sorted(_ESTIMATORS)}"
        )
    return estimator._from_file(header, tensors, _build)
