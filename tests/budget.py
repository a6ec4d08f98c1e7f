"""How many cases Hypothesis tries: all of them, or a tenth in the fast loop of `make quick`."""

from __future__ import annotations

import os

QUICK = os.environ.get("EVERGROW_TESTS") == "quick"


def budget(n_examples: int) -> int:
    """The number of cases for a test that tries ``n_examples`` in a full run."""
    return max(5, n_examples // 10) if QUICK else n_examples
