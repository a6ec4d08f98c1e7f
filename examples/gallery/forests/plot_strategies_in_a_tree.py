"""
What each update strategy changes in a tree
===========================================

One tree of :class:`~evergrow.NCMForestClassifier` knows four classes and gets two more with
``partial_fit``. The parameter ``update`` says which nodes may change (Sec. 4 of Ristin et al.,
2014). We draw the tree before the update and after each of the four strategies.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from evergrow import IGT, RTST, RUST, ULS, NCMForestClassifier
from evergrow.estimators import ClassMeans

rng = np.random.default_rng(0)
centres = np.array([[0, 0], [4, 4], [8, 0], [12, 4], [4, 0], [8, 4]])
y = np.repeat(np.arange(6), 60)
X = centres[y] + 0.7 * rng.standard_normal((len(y), 2))
old = y < 4


def train(update):
    """Return a tree of the old classes, updated with the new ones unless update is None."""
    forest = NCMForestClassifier(
        1,
        update=update or IGT(refresh=0.0),
        splits=ClassMeans(n_centroids="sqrt"),
        min_samples_leaf=12,
        standardize="none",
        random_state=12,
    )
    forest.fit(X[old], y[old])
    return forest if update is None else forest.partial_fit(X[~old], y[~old])


models = {
    "before": train(None),
    "ULS": train(ULS(refresh=0.0)),
    "IGT": train(IGT(refresh=0.0)),
    "RUST": train(RUST(share=0.6, refresh=0.0)),
    "RTST": train(RTST(share=0.6, refresh=0.0)),
}

# %%
# ``explain`` gives the path of a sample. The paths of all samples together are the whole tree. A
# place in the tree is a tuple of sides: ``("left", "right")`` is the right child of the root's
# left child.


def read_tree(model):
    """Return which classes each splitting node compares with, and the class counts of leaves."""
    splits, leaves = {}, {}
    for x in X:
        path, place = model.explain([x]).trees[0], ()
        for decision in path.decisions:
            splits[place] = list(zip(decision.classes, decision.sides, strict=True))
            place = (*place, decision.goes)
        leaves[place] = [path.counts.get(label, 0) for label in range(6)]
    return splits, leaves


def draw_tree(axes, splits, leaves, known, place=(), left=0.0):
    """Draw what is below a place; return its centre and right end."""
    if place in leaves:
        centre = (left, -len(place))
        axes.pie(leaves[place], colors=classes.colors, center=centre, radius=0.38, frame=True)
        return left, left + 1
    ends = []
    for side in ("left", "right"):
        end, left = draw_tree(axes, splits, leaves, known, (*place, side), left)
        ends.append(end)
    centre, depth = np.mean(ends), len(place)
    axes.plot([ends[0], centre, ends[1]], [-depth - 1, -depth, -depth - 1], "0.6", zorder=0)
    is_same = splits[place] == known.get(place)
    fill = "0.6" if is_same else "crimson" if place in known else "white"
    edge = "0.6" if is_same else "crimson"
    axes.plot(centre, -depth, "D", color=fill, markeredgecolor=edge, markersize=7)
    return centre, left


# %%
# A pie is a leaf and shows the classes of its samples. A diamond is a splitting node: grey if it
# is as before, red if it compares with other class means than before, and white if it is new.

classes = ListedColormap([f"C{label}" for label in range(6)])
extent = (-3, 15, -4, 8)
grid = np.stack(np.meshgrid(np.linspace(*extent[:2], 240), np.linspace(*extent[2:], 160)), axis=-1)
known, _ = read_tree(models["before"])
figure, axes = plt.subplots(2, 5, figsize=(11, 3.6), height_ratios=(4, 5), layout="constrained")
for (plane, tree), (name, model) in zip(axes.T, models.items(), strict=True):
    answers = model.predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    shown = old if name == "before" else y >= 0
    plane.imshow(answers, classes, vmin=0, vmax=5, extent=extent, origin="lower", alpha=0.35)
    plane.scatter(*X[shown].T, c=y[shown], cmap=classes, vmin=0, vmax=5, s=2)
    plane.set(xticks=[], yticks=[], title=name)
    _, n_leaves = draw_tree(tree, *read_tree(model), known)
    tree.set(xlim=(n_leaves / 2 - 5.6, n_leaves / 2 + 4.6), ylim=(-5.5, 0.5))
    tree.set_axis_off()
plt.show()

# %%
# - :class:`~evergrow.ULS` changes the class counts of leaves. The new classes have no leaf of
#   their own, so they are never the answer here.
# - :class:`~evergrow.IGT` also splits the leaves that new samples reached. Splits above stay.
# - :class:`~evergrow.RUST` also puts means of new classes into chosen nodes, and moves the samples
#   that change sides. Nodes that were not chosen stay, even below changed ones.
# - :class:`~evergrow.RTST` grows chosen nodes again, with everything below them.
#
# ``refresh`` comes on top of a strategy. It grows whole trees of the forest again, some at each
# update. :doc:`/method_growing` has the equations and says where they are in the code, and
# :ref:`sphx_glr_gallery_forests_plot_update_strategies.py` measures accuracy and cost.
