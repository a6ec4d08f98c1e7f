"""
Class means and learnt metrics
==============================

:class:`~evergrow.NCMClassifier` keeps the mean of each class and answers with the nearest one.
What "nearest" means is up to the metric. Here classes vary much along one direction, which says
nothing about the class.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from evergrow import NCMClassifier, NCMMetric

rng = np.random.default_rng(0)
y = np.repeat([0, 1, 2], 100)
centres = np.array([[0, 0], [2, 0], [4, 1]])
X = centres[y] + rng.standard_normal((300, 2)) @ [[0.5, 2.0], [0.3, -0.1]]
metrics = {
    "euclidean": "euclidean",
    "mahalanobis": "mahalanobis",
    "NCMMetric": NCMMetric(random_state=0),
}
colours = ListedColormap(["C0", "C1", "C2"])
extent = (-3, 7, -7, 7)
x, height = np.meshgrid(np.linspace(*extent[:2], 300), np.linspace(*extent[2:], 300))

figure, axes = plt.subplots(1, 3, figsize=(9, 4.6), layout="constrained")
for panel, (name, metric) in zip(axes, metrics.items(), strict=True):
    model = NCMClassifier(metric=metric).fit(X, y)
    answers = model.predict(np.column_stack([x.ravel(), height.ravel()])).reshape(x.shape)
    panel.imshow(answers, colours, extent=extent, origin="lower", alpha=0.35)
    panel.scatter(*X.T, c=y, cmap=colours, s=5)
    panel.scatter(*centres.T, c="black", marker="x", s=60)
    panel.set(title=f"{name}: {model.score(X, y):.0%}", xticks=[], yticks=[])
    panel.set(xlim=extent[:2], ylim=extent[2:])
plt.show()

# %%
# Euclidean borders lie half way between the means. ``"mahalanobis"`` measures distances by the
# covariance within classes, so borders follow the shape that all classes share.
# :class:`~evergrow.NCMMetric` learns a projection in which samples are likely to be nearest to
# the mean of their own class.
#
# The space that a metric sees
# ----------------------------
#
# ``NCMMetric`` is also a transformer. In its space the distance is the Euclidean one again, so
# borders lie half way between the means.

metric = NCMMetric(random_state=0).fit(X, y)
figure, axes = plt.subplots(1, 2, figsize=(9, 4), width_ratios=(1, 2.8), layout="constrained")
for panel, points, title in zip(
    axes, (X, metric.transform(X)), ("Features", "After the metric"), strict=True
):
    means = np.array([points[y == label].mean(axis=0) for label in range(3)])
    panel.scatter(*points.T, c=y, cmap=colours, s=5)
    panel.scatter(*means.T, c="black", marker="x", s=60)
    panel.set(title=title, aspect="equal")
    panel.grid()
plt.show()

# %%
# The metric stretches the direction that tells the classes apart, so the one along which they
# vary counts less. It may also mirror or turn the space, which changes no distance.
#
# A metric knows the classes it was learnt from
# ---------------------------------------------
#
# Now digits come in two steps: some classes with ``fit``, the others with ``partial_fit``.
# Whatever comes first, means and covariance are those of all examples in the end. A learnt
# metric stays as the first classes made it.

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
counts = (2, 3, 4, 6, 8, 10)
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, metric in metrics.items():
    accuracy = []
    for n_first in counts:
        first = y < n_first
        model = NCMClassifier(metric=metric).fit(X[first], y[first])
        if not first.all():
            model.partial_fit(X[~first], y[~first])
        accuracy.append(100 * model.score(X_test, y_test))
    axes.plot(counts, accuracy, "o-", label=name)
axes.set(xlabel="classes in the first step", xticks=counts, title="Accuracy on all ten digits, %")
axes.grid()
axes.legend(title="metric")
plt.show()

# %%
# Learnt from all ten classes, the metric is best. Learnt from two, it is worse than none. Where
# classes keep coming, ``"mahalanobis"`` is the better choice. :doc:`/method_class_means` has the
# equations, and :doc:`/class_means` shows how to use them.
