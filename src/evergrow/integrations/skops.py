"""The types that skops may trust when it reads Evergrow's estimators.

skops stores an estimator as the content of its model file, so loading one checks it as
:func:`evergrow.load` does, and the estimator itself is the only type to trust.
"""

from __future__ import annotations

from evergrow import estimators, vision
from evergrow.storage.models.loader import loadable_estimators


def trusted_types() -> list[str]:
    """Return the types of Evergrow that ``skops.io.load`` may trust.

    Pass the list as `trusted` to ``skops.io.load`` to load a file with estimators of Evergrow.

    Returns
    -------
    names : list of str
        Full names of all estimators that can be saved.

    Examples
    --------
    >>> from evergrow.integrations.skops import trusted_types
    >>> "evergrow.estimators.means.ncm.NCMClassifier" in trusted_types()
    True
    """
    names = loadable_estimators()
    kinds = {getattr(room, n) for room in (estimators, vision) for n in names if n in room.__all__}
    return sorted(f"{kind.__module__}.{kind.__name__}" for kind in kinds)
