"""Least squares and class means: time of an example, of a stream, and of choosing a penalty.

The accuracies here are those that no experiment measures; others are in
``evergrow experiment icra2017`` and ``evergrow experiment cvpr2014-fig10``.
"""

from __future__ import annotations

from benchmarks.linear import choosing, one_example, probabilities, rejection, stream

PARTS = {
    "one-example": one_example.run,
    "stream": stream.run,
    "auto": probabilities.run,
    "rejection": rejection.run,
    "choosing": choosing.run,
}
