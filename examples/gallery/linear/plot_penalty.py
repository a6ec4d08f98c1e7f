"""
The penalty by leave-one-out
============================

How strongly should :class:`~evergrow.RLSClassifier` be regularised? By default it finds out
itself: it predicts each example by the model without it. For least squares this needs no
training. One solution with all examples gives the scores of all left-out examples
(:doc:`/method_least_squares` has the equation). Here we compute them in NumPy and compare them
with models that are trained again.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from evergrow import RLSClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, train_size=120, stratify=y, random_state=0)


def left_out_scores(X, y, penalty):
    """Return the scores of each example by the weights of all others."""
    X = np.column_stack([X, np.ones(len(X))])  # the intercept, which is hardly penalised
    penalties = np.append(np.full(X.shape[1] - 1, penalty), 1e-3)
    solved = np.linalg.solve(X.T @ X + np.diag(penalties), X.T)
    leverages = np.einsum("ij,ji->i", X, solved)
    targets = np.eye(10)[y]
    scores = X @ (solved @ targets)
    return (scores - leverages[:, None] * targets) / (1 - leverages[:, None])


# %%
# For one example, compare with a model that never saw it.

settings = {"regularization": 100.0, "recoding": 0.0, "scoring": "regression"}
model = RLSClassifier(**settings).fit(X[1:], y[1:])
difference = model.decision_function(X[:1]) - left_out_scores(X, y, 100.0)[0]
print(f"Largest difference of a score: {np.abs(difference).max():.0e}")

# %%
# Now for many penalties: the accuracy on left-out examples, which costs one solution each, and
# the accuracy on test examples, which the model never sees. A class that lost an example has
# lower scores than the others, so its score is enlarged to that of a class of full size.

own = np.arange(len(y)), y
n_own = np.bincount(y)[y]
penalties = np.logspace(-2, 6, 33)
left_out, seen, unseen = [], [], []
for penalty in penalties:
    scores = left_out_scores(X, y, penalty)
    scores[own] *= n_own / (n_own - 1)
    left_out.append(100 * np.mean(scores.argmax(axis=1) == y))
    model = RLSClassifier(**settings | {"regularization": penalty}).fit(X, y)
    seen.append(100 * model.score(X, y))
    unseen.append(100 * model.score(X_test, y_test))
chosen = RLSClassifier(**settings | {"regularization": "auto"}).fit(X, y).regularization_

figure, axes = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
axes.semilogx(penalties, seen, ":", color="C2", label="training examples")
axes.semilogx(penalties, left_out, color="C0", label="left-out examples")
axes.semilogx(penalties, unseen, color="C1", label="test examples")
axes.axvline(chosen, color="black", linestyle="--")
axes.text(0.8 * chosen, 61, "chosen", ha="right")
axes.set(xlabel="penalty", ylim=(60, 101), title="Accuracy, %")
axes.grid()
axes.legend(loc="lower left")
plt.show()

# %%
# Training examples say that no penalty is best, which is wrong. Left-out examples and test
# examples agree on where the best penalties are, and no example was held out. The model judges
# a penalty by accuracy and by squared error: a few examples do not measure accuracy well.
