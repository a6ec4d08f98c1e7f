"""The SVM forest [GuoReport Sec. 2.1.1] in plain NumPy.

The SVMs are trained as in [Hsieh2008 Alg. 3], for the hinge loss, in double precision. The core
adds up in single precision: weights agree closely, not to the last bit.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tests.reference.axis_forest import best_of
from tests.reference.linear_forest import PlaneNode, project, to_half
from tests.reference.ncm_forest import Floats, Ints, Node, Rules, assignments, classes_at
from tests.reference.random import Stream, derive

Doubles = npt.NDArray[np.float64]

MAX_SWEEPS = 5
TOLERANCE = 0.1
MAX_TRAINED = 2000


def objective(X: Doubles, labels: Doubles, weights: Doubles, bias: float, C: float) -> float:
    """What an SVM minimises; the bias is the weight of a constant feature."""
    hinge = np.maximum(0.0, 1.0 - labels * (X @ weights + bias))
    return float(0.5 * (weights @ weights + bias**2) + C * hinge.sum())


def train_svm(
    X: Doubles,
    labels: Doubles,
    C: float,
    stream: Stream,
    max_sweeps: int = MAX_SWEEPS,
    tolerance: float = TOLERANCE,
) -> tuple[Doubles, float]:
    """Dual coordinate descent with shrinking; weights and bias."""
    n = len(X)
    X1 = np.column_stack([X, np.ones(n)])  # the constant feature
    diagonal = (X1**2).sum(axis=1)  # of Q
    alpha, w = np.zeros(n), np.zeros(X1.shape[1])
    order, n_active = list(range(n)), n
    high_before, low_before = math.inf, -math.inf
    for _ in range(max_sweeps):
        for i in range(n_active):
            j = i + stream.below(n_active - i)
            order[i], order[j] = order[j], order[i]
        high, low = -math.inf, math.inf
        s = 0
        while s < n_active:
            i = order[s]
            gradient = labels[i] * (w @ X1[i]) - 1.0
            at_zero, at_upper = alpha[i] == 0, alpha[i] == C
            if (at_zero and gradient > high_before) or (at_upper and gradient < low_before):
                n_active -= 1  # shrink
                order[s], order[n_active] = order[n_active], order[s]
                continue
            outwards = (at_zero and gradient > 0) or (at_upper and gradient < 0)
            projected = 0.0 if outwards else gradient
            high, low = max(high, projected), min(low, projected)
            if projected != 0.0:
                old = alpha[i]
                alpha[i] = min(max(old - gradient / diagonal[i], 0.0), C)
                w += (alpha[i] - old) * labels[i] * X1[i]
            s += 1
        if high - low <= tolerance:
            if n_active == n:
                break
            n_active, high_before, low_before = n, math.inf, -math.inf
        else:
            high_before = high if high > 0 else math.inf
            low_before = low if low < 0 else -math.inf
    return w[:-1], float(w[-1])


def draw_trained(n: int, stream: Stream) -> list[int]:
    """Places of the samples to train on: all, or a subset (Knuth's algorithm S)."""
    if n <= MAX_TRAINED:
        return list(range(n))
    chosen: list[int] = []
    for i in range(n):
        if stream.below(n - i) < MAX_TRAINED - len(chosen):
            chosen.append(i)
    return chosen


def propose_svm(X: Floats, y: Ints, rows: Ints, stream: Stream, rules: Rules) -> Node | None:
    """The best of a few SVMs, each between random halves of the classes."""
    present, _ = classes_at(y, rows)
    trained = rows[draw_trained(len(rows), stream)]
    key = stream.next()
    own = X[trained].astype(np.float64)
    centre = own.mean(axis=0)
    variance = float(((own - centre) ** 2).mean())
    spread = math.sqrt(variance) if variance > 0 else 1.0
    candidates: list[Node] = []
    for i, assignment in enumerate(assignments(len(present), rules.n_assignments, stream)):
        goes_right = dict(zip(present, assignment, strict=True))
        labels = np.array([1.0 if goes_right[int(c)] else -1.0 for c in y[trained]])
        scaled = (own - centre) / spread
        w, b = train_svm(scaled, labels, rules.regularization, Stream(derive(key, i)))
        largest = np.abs(w).max()
        if largest > 0:
            weights = to_half((w / largest).astype(np.float32))
            middle = project(centre[None].astype(np.float32), weights)[0]
            threshold = float(np.float32(middle - b * spread / largest))
            candidates.append(PlaneNode(rows, centroids=weights[None], threshold=threshold))
    return best_of(candidates, X, y, rules)
