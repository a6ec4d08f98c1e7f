"""Data sets that need no file: scikit-learn's digits and generated data."""

from __future__ import annotations

from typing import Any

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.foundation.params import Integer, Nothing, Number, check_parameters
from evergrow.research.datasets.dataset import Dataset

_SIZES = {
    "n_classes": (Integer(1),),
    "n_train": (Integer(1),),
    "n_test": (Integer(1),),
    "random_state": (Integer(0),),
}


def digits() -> Dataset:
    """Return scikit-learn's 1797 digits of 8 x 8 pixels, a quarter of each class for testing.

    Examples
    --------
    >>> from evergrow.research import digits
    >>> digits().X_train.shape
    (1347, 64)
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X.astype(np.float32), y, random_state=0, stratify=y)
    X_train, X_test, y_train, y_test = parts
    return Dataset("digits", X_train, y_train, X_test, y_test)


def spirals(
    n_classes: int = 20, n_train: int = 500, n_test: int = 100, *, random_state: int = 0
) -> Dataset:
    """Generate the arms of a spiral in the plane, one arm per class.

    The radius is ``r = 2 (z + 3)`` with ``z`` standard normal; the angle of class ``c`` of ``C``
    is ``2 pi c / C + r / 2``, spread by a tenth of the distance between arms.

    Examples
    --------
    >>> from evergrow.research import spirals
    >>> spirals(4, n_train=10).X_train.shape
    (40, 2)
    """
    given = {"n_classes": n_classes, "n_train": n_train, "n_test": n_test}
    check_parameters({**given, "random_state": random_state}, _SIZES)
    rng = np.random.default_rng(random_state)
    labels = np.repeat(np.arange(n_classes), n_train + n_test)
    radius = 2 * (rng.standard_normal(len(labels)) + 3)
    arm = 2 * np.pi / n_classes
    angle = arm * labels + 0.5 * radius + arm / 10 * rng.standard_normal(len(labels))
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).astype(np.float32)
    return _split("spirals", X, labels, n_train, n_test)


def mixture(
    n_classes: int = 20,
    n_features: int = 32,
    n_train: int = 50,
    n_test: int = 20,
    *,
    distance: float = 0.35,
    n_groups: int | None = None,
    random_state: int = 0,
) -> Dataset:
    """Generate overlapping Gaussian classes.

    Parameters
    ----------
    n_classes : int, default=20
        Number of classes.
    n_features : int, default=32
        Number of features.
    n_train : int, default=50
        Number of training samples per class.
    n_test : int, default=20
        Number of test samples per class.
    distance : float, default=0.35
        Standard deviation of the class centres along each feature, relative to the one within
        classes: smaller is harder.
    n_groups : int, default=None
        Number of groups of similar classes, the coarse classes; None for no groups.
    random_state : int, default=0
        Random seed.

    Examples
    --------
    >>> from evergrow.research import mixture
    >>> mixture(6, n_groups=2).parents
    {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1}
    """
    given = {"n_classes": n_classes, "n_train": n_train, "n_test": n_test}
    check_parameters({**given, "random_state": random_state}, _SIZES)
    check_parameters(
        {"n_features": n_features, "distance": distance, "n_groups": n_groups},
        {
            "n_features": [Integer(1)],
            "distance": [Number(0.0)],
            "n_groups": [Integer(1, n_classes), Nothing()],
        },
    )
    rng = np.random.default_rng(random_state)
    centres = distance * rng.standard_normal((n_classes, n_features))
    parents = None
    if n_groups is not None:
        group = np.arange(n_classes) * n_groups // n_classes
        # Half of the spread lies between groups, half within them.
        centres = (distance * rng.standard_normal((n_groups, n_features)))[group] + centres
        centres /= np.sqrt(2)
        parents = dict(enumerate(group.tolist()))
    labels = np.repeat(np.arange(n_classes), n_train + n_test)
    X = (rng.standard_normal((len(labels), n_features)) + centres[labels]).astype(np.float32)
    return _split("mixture", X, labels, n_train, n_test, parents)


def _split(
    name: str,
    X: Array,
    y: Array,
    n_train: int,
    n_test: int,
    parents: dict[Any, Any] | None = None,
) -> Dataset:
    """Take the first samples of each class for training."""
    train = np.arange(len(y)) % (n_train + n_test) < n_train
    return Dataset(name, X[train], y[train], X[~train], y[~train], parents)
