"""
A growing tree, before and after new classes
============================================

Each node of an NCM tree holds the means of a few classes. Each mean leads left or right, and a
sample follows the nearest mean (Eqs. 2 and 6 of Ristin et al., 2014; :doc:`/method_ncm_forests`
explains them). We train a single tree of :class:`~evergrow.NCMForestClassifier` on three
classes, then add two classes with ``partial_fit``.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from evergrow import IGT, NCMForestClassifier

rng = np.random.default_rng(3)
centres = np.array([[0, 0], [5, 0], [2.5, 4], [7.5, 4], [10, 0]])
y = np.repeat(np.arange(5), 60)
X = centres[y] + 0.9 * rng.standard_normal((len(y), 2))
old = y < 3

# With refresh=0.0 no tree is grown again: what changes is the work of the strategy IGT.
options = {"min_samples_leaf": 10, "standardize": "none", "random_state": 0}
before = NCMForestClassifier(1, update=IGT(refresh=0.0), **options).fit(X[old], y[old])
after = NCMForestClassifier(1, update=IGT(refresh=0.0), **options).fit(X[old], y[old])
after.partial_fit(X[~old], y[~old])

# %%
# ``explain`` follows one sample through the tree. Here it is a sample of the newest class:

print(after.explain(X[-1:]))

# %%
# The paths of all samples together are the whole tree, which is enough to draw it. A pie is a
# leaf and shows which classes its training samples have.


def read_tree(model):
    """Return the children of each node and the class counts of each leaf."""
    children, counts = {}, {}
    for x in X:
        path = model.explain([x]).trees[0]
        nodes = [decision.node for decision in path.decisions] + [path.leaf]
        for decision, child in zip(path.decisions, nodes[1:], strict=True):
            children.setdefault(decision.node, {})[decision.goes] = child
        counts[path.leaf] = [path.counts.get(label, 0) for label in range(5)]
    return children, counts


def draw_tree(axes, children, counts, node=0, depth=0, left=0):
    """Draw what is below a node; return its centre and right end."""
    if node in counts:
        axes.pie(counts[node], colors=colours.colors, center=(left, -depth), radius=0.4, frame=True)
        return left, left + 1
    ends = []
    for side in ("left", "right"):
        end, left = draw_tree(axes, children, counts, children[node][side], depth + 1, left)
        ends.append(end)
    axes.plot([ends[0], np.mean(ends), ends[1]], [-depth - 1, -depth, -depth - 1], "0.6", zorder=0)
    return np.mean(ends), left


colours = ListedColormap([f"C{label}" for label in range(5)])
extent = (-3, 13, -3, 7)
x, height = np.meshgrid(np.linspace(*extent[:2], 400), np.linspace(*extent[2:], 250))
figure, axes = plt.subplots(2, 2, figsize=(9, 6.2), layout="constrained")
for column, model, seen in ((0, before, old), (1, after, y >= 0)):
    plane, tree = axes[:, column]
    answers = model.predict(np.column_stack([x.ravel(), height.ravel()])).reshape(x.shape)
    plane.imshow(answers, colours, vmin=0, vmax=4, extent=extent, origin="lower", alpha=0.35)
    plane.scatter(*X[seen].T, c=y[seen], cmap=colours, vmin=0, vmax=4, s=8)
    plane.set(xticks=[], yticks=[], title=("Three classes", "Two classes later")[column])
    _, n_leaves = draw_tree(tree, *read_tree(model))
    tree.set(xlim=(n_leaves / 2 - 4.5, n_leaves / 2 + 3.5), ylim=(-4.5, 0.3))
    tree.set_axis_off()
plt.show()

# %%
# The three splits at the top are the same in both trees. Leaves that new samples reached have
# been split again, as far as that separates classes. So borders between old classes stay where
# they were. The other strategies change splits as well: see
# :ref:`sphx_glr_gallery_forests_plot_strategies_in_a_tree.py` and :doc:`/growing`.
