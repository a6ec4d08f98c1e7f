"""
How a node splits its samples
=============================

A node of an NCM tree draws a few of the classes that reach it, computes their means and sends
each mean left or right. A sample follows its nearest mean. We look at the root of a tree of
:class:`~evergrow.NCMForestClassifier` on six classes; it draws four of them.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from evergrow import NCMForestClassifier
from evergrow.estimators import ClassMeans

rng = np.random.default_rng(5)
centres = np.array([[0, 0], [4, 0.5], [8, 0], [1, 4], [5, 4.5], [9, 4]])
y = np.repeat(np.arange(6), 50)
X = centres[y] + 0.8 * rng.standard_normal((len(y), 2))

forest = NCMForestClassifier(
    1, splits=ClassMeans(n_centroids=4), min_samples_leaf=10, standardize="none", random_state=2
)
forest.fit(X, y)
root = forest.explain(X[:1]).trees[0].decisions[0]
print("the root compares with the means of", root.classes, "which lead", root.sides)

# %%
# The left panel shows all samples and the four means (stars). In the middle, every point of the
# plane has the colour of the nearest mean (Eq. 2 of Ristin et al., 2014). On the right, it has
# the colour of the side that this mean leads to (Eq. 6): this is the split.

means = np.array([X[y == label].mean(axis=0) for label in root.classes])
extent = (-3, 12, -3, 7.5)
plane = np.stack(np.meshgrid(np.linspace(*extent[:2], 300), np.linspace(*extent[2:], 210)), axis=-1)


def find_nearest(points):
    """Return the position of the nearest mean of the root for each point."""
    return np.linalg.norm(points[..., None, :] - means, axis=-1).argmin(axis=-1)


def draw(axes, colour_of_mean, title):
    """Draw the samples and means on a plane that shows the colours of the nearest means."""
    if colour_of_mean is not None:
        colours = ListedColormap(colour_of_mean)
        axes.imshow(find_nearest(plane), colours, extent=extent, origin="lower", alpha=0.35)
    axes.scatter(*X.T, c=y, cmap=classes, s=5)
    for mean, label in zip(means, root.classes, strict=True):
        axes.plot(*mean, "*", color=f"C{label}", markersize=14, markeredgecolor="black")
    axes.set(xlim=extent[:2], ylim=extent[2:], xticks=[], yticks=[], aspect="equal", title=title)


classes = ListedColormap([f"C{label}" for label in range(6)])
side_colours = {"left": "0.35", "right": "gold"}
figure, axes = plt.subplots(1, 3, figsize=(10, 2.9), layout="constrained")
draw(axes[0], None, "Six classes, four means")
draw(axes[1], [f"C{label}" for label in root.classes], "The nearest mean")
draw(axes[2], [side_colours[side] for side in root.sides], "Its side: left or right")
plt.show()

# %%
# There are seven ways to send four means to two sides (one way and its mirror image are the
# same split). The node takes the one with the highest information gain (Eq. 3): the entropy of
# the classes at the node, less the mean entropy of its children.


def entropy(labels):
    """Return the entropy of the classes of samples, in nats."""
    shares = np.bincount(labels) / len(labels)
    return -sum(share * np.log(share) for share in shares if share > 0)


def gain(right):
    """Return the information gain of a split; right says which samples go right."""
    children = right.mean() * entropy(y[right]) + (~right).mean() * entropy(y[~right])
    return entropy(y) - children


nearest = find_nearest(X)
ways = [(*sides, False) for sides in product((False, True), repeat=3) if any(sides)]
gains = [gain(np.array(sides)[nearest]) for sides in ways]

figure, axes = plt.subplots(2, 4, figsize=(10, 4.4), layout="constrained")
for panel, sides, gained in zip(axes.flat, ways, gains, strict=False):
    is_best = gained == max(gains)
    draw(panel, ["gold" if right else "0.35" for right in sides], f"gain {gained:.2f}")
    panel.title.set_color("C2" if is_best else "black")
    for spine in panel.spines.values():
        spine.set(visible=is_best, color="C2", linewidth=3)
axes[1, 3].set_axis_off()
plt.show()

# %%
# The forest chose the split with the green frame:

chosen = [side == root.sides[0] for side in root.sides]
best = ways[int(np.argmax(gains))]
print("the forest took the best split:", [right == best[0] for right in best] == chosen)

# %%
# The next nodes do the same with their own samples. They draw their classes again, so class
# means become local, and the borders of a tree bend: see
# :ref:`sphx_glr_gallery_forests_plot_growing_tree.py`. :doc:`/method_ncm_forests` has the
# equations and says where they are in the code.
