"""
Guesses of fine labels
======================

All samples have a coarse label, and few have a fine one.
:class:`~evergrow.SubcategoryForestClassifier` first guesses the missing fine labels, then learns
from given and guessed labels together. Here two coarse classes, circles and squares, have three
fine classes each.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from evergrow import SubcategoryForestClassifier
from evergrow.estimators import guess_within

rng = np.random.default_rng(1)
centres = np.array([[0, 4], [-1, 0], [2.6, 2], [7.4, 4], [8.4, 0], [4.8, 2]])
fine = np.repeat(np.arange(6), 50)
coarse = fine // 3
X = centres[fine] + 0.95 * rng.standard_normal((len(fine), 2))
is_given = np.tile(np.arange(50) < 4, 6)

# %%
# A guess is one of the fine classes of the sample's own coarse class. ``"nn"`` takes the fine
# label of the nearest neighbour (Sec. 4.3 of Ristin et al., 2015), ``"ridge"`` that of a ridge
# regression.

guesses = {}
for guesser in ("nn", "ridge"):
    guesses[guesser] = fine.copy()
    for label in (0, 1):
        known, asked = ((coarse == label) & given for given in (is_given, ~is_given))
        guesses[guesser][asked] = guess_within(X[known], fine[known], X[asked], guesser=guesser)


def draw(axes, labels, title):
    """Draw the samples in the colours of their labels; a sample of label -1 is grey."""
    for label, mark in ((0, "o"), (1, "s")):
        # Grey samples first: others are on top of them.
        rows = np.flatnonzero(coarse == label)[np.argsort(labels[coarse == label])]
        colours = ["0.8" if one < 0 else f"C{one}" for one in labels[rows]]
        axes.scatter(*X[rows].T, c=colours, marker=mark, s=14)
    axes.set(xlim=extent[:2], ylim=extent[2:], xticks=[], yticks=[], aspect="equal", title=title)


# %%
# In the first panel, samples without a fine label are grey. The titles of the next two say how
# many guesses are right. The last panel shows the answers of a forest with the default method,
# ``"ridge-h"``.

given = np.where(is_given, fine, -1)
forest = SubcategoryForestClassifier(20, min_samples_leaf=3, random_state=0)
forest.fit(X, np.column_stack([coarse, given]))

extent = (-4, 11.5, -3.5, 7.5)
grid = np.stack(np.meshgrid(np.linspace(*extent[:2], 200), np.linspace(*extent[2:], 140)), axis=-1)
figure, axes = plt.subplots(2, 2, figsize=(9, 6.6), layout="constrained")
draw(axes[0, 0], given, "Four fine labels of each class")
for panel, (guesser, found) in zip(axes.flat[1:], guesses.items(), strict=False):
    right = (found == fine)[~is_given].mean()
    draw(panel, found, f'Guesses of "{guesser}": {right:.0%} right')
answers = forest.predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
colours = ListedColormap([f"C{label}" for label in range(6)])
axes[1, 1].imshow(answers, colours, vmin=0, vmax=5, extent=extent, origin="lower", alpha=0.35)
draw(axes[1, 1], given, "Answers of the forest")
plt.show()

# %%
# Guesses stay within the circles or the squares, because the coarse label is known. Ridge
# regression draws straight borders between fine classes, which suits features of many
# dimensions. Nearest neighbours follow borders of any shape.
# :ref:`sphx_glr_gallery_forests_plot_coarse_to_fine.py` measures what they are worth.
# :doc:`/method_subcategories` has the equations and says where they are in the code.
