"""
Decision maps on spirals
========================

Four arms of a spiral, one per class. The colour of the plane is the answer of a classifier
there. All models learn two arms first and the other two with ``partial_fit``.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from evergrow import (
    AxisForestClassifier,
    LinearForestClassifier,
    NCMClassifier,
    NCMForestClassifier,
    RLSClassifier,
    SVMForestClassifier,
)
from evergrow.estimators import RFF

# Each arm has 150 samples to learn and 250 to test, with some noise across the arm.
rng = np.random.default_rng(0)
y = np.repeat(np.arange(4), 400)
radius = 2 * (rng.standard_normal(len(y)) + 3)
angle = (np.pi / 2) * (y + rng.standard_normal(len(y)) / 10) + radius / 2
X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
train = np.arange(len(y)) % 400 < 150
X_train, y_train, X_test, y_test = X[train], y[train], X[~train], y[~train]
models = {
    "Class means": NCMClassifier(),
    "Least squares": RLSClassifier(random_state=0),
    "Random features": RLSClassifier(features=RFF(100), random_state=0),
    "NCM forest": NCMForestClassifier(random_state=0),
    "Axis forest": AxisForestClassifier(random_state=0),
    "Linear forest": LinearForestClassifier(random_state=0),
    "SVM forest": SVMForestClassifier(random_state=0),
}
first = y_train < 2
for model in models.values():
    model.fit(X_train[first], y_train[first])
    model.partial_fit(X_train[~first], y_train[~first])

# %%
# The title of a map gives the accuracy on test samples.

steps = np.linspace(-12, 12, 240)
plane = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
colours = ListedColormap([f"C{label}" for label in range(4)])
figure, axes = plt.subplots(2, 4, figsize=(10, 5.6), layout="constrained")
axes[0, 0].scatter(*X_train.T, c=y_train, cmap=colours, s=4)
axes[0, 0].set_title("Training samples")
for panel, (name, model) in zip(axes.flat[1:], models.items(), strict=True):
    answers = model.predict(plane).reshape(len(steps), -1)
    panel.imshow(answers, colours, extent=(-12, 12, -12, 12), origin="lower", alpha=0.6)
    panel.set_title(f"{name}: {model.score(X_test, y_test):.0%}")
for panel in axes.flat:
    panel.set(xlim=(-12, 12), ylim=(-12, 12), xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# :class:`~evergrow.NCMClassifier` and :class:`~evergrow.RLSClassifier` divide the plane by
# straight lines, which cannot follow an arm. With random features, least squares is linear in a
# hundred cosines of the input, and its borders bend. Outside of the arms, where
# the data has no samples, they bend by chance.
#
# The forests differ in how a node splits its samples: by the nearest of some class means
# (:class:`~evergrow.NCMForestClassifier`, Eq. 6 of Ristin et al., 2014), by a threshold on one
# feature (:class:`~evergrow.AxisForestClassifier`), by a random plane
# (:class:`~evergrow.LinearForestClassifier`), or by a support vector machine between halves of
# the classes (:class:`~evergrow.SVMForestClassifier`). The borders of the axis forest run along
# the axes. :doc:`/method_ncm_forests` explains all four, and :doc:`/choosing` says which learner
# suits which data.
