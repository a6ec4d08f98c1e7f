"""What schemathesis cannot invent by itself: pictures that can be read.

Loaded by schemathesis, which is told so by the environment variable ``SCHEMATHESIS_HOOKS``.
"""

from __future__ import annotations

import schemathesis
from hypothesis import strategies as st

from benchmarks.service.pictures import different, photograph

__all__ = ["PICTURES"]

_DRAWN = [photograph(seed, width=48, height=32) for seed in range(4)]

PICTURES = st.builds(different, st.sampled_from(_DRAWN), st.integers(0, 10**6))

schemathesis.openapi.format("binary", PICTURES)
schemathesis.openapi.media_type("image/jpeg", PICTURES)
