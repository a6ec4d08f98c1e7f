"""
Visual words of an ERC forest
=============================

An image is many small patches. Extremely randomised trees sort the patches into leaves, and
each leaf is a *visual word* (Moosmann et al., 2006; :doc:`/method_codebooks` has the equations).
:class:`~evergrow.vision.BagOfWords` describes an image by the words that occur in it. The
pictures are drawn by :download:`pictures.py </../examples/pictures.py>`.
"""

import matplotlib.pyplot as plt
import numpy as np
from pictures import draw_picture

from evergrow import ERCForest, RLSClassifier
from evergrow.vision import (
    BagOfWords,
    DensePatches,
    LocalFeatures,
    RandomPatches,
    leaf_patches,
    word_map,
)

things = ["tree", "mushroom"]
images = [np.asarray(draw_picture(thing, seed)) for seed in range(25) for thing in things]
labels = np.tile(things, 25)
n = 38  # for training

# %%
# From patches to a histogram
# ---------------------------
#
# One tree with twelve leaves is enough to see how it works. It learns from patches on a grid,
# then gives each patch of two test pictures a word; each word has a colour. So few leaves need
# good tests: here a node compares 768 random tests and never takes the first good one.

local = LocalFeatures("haar", patches=DensePatches(step=5, size=20))
tree = ERCForest(1, n_words=12, max_trials=768, min_score=1.0, random_state=0)
tree.fit(local.transform(images[:n]), labels[:n])
figure, axes = plt.subplots(2, 3, figsize=(9, 3.9), width_ratios=(1, 1, 1.3), layout="constrained")
for panels, image, thing in zip(axes, images[-4:-2], things, strict=True):
    descriptors, boxes = local.describe(image)
    words = tree.transform(descriptors).ravel()
    n_columns, n_rows = (len(np.unique(boxes[:, axis])) for axis in (0, 1))
    panels[0].imshow(image)
    panels[1].imshow(words.reshape(n_rows, n_columns), cmap="tab20", vmin=0, vmax=19)
    panels[2].bar(range(12), np.bincount(words, minlength=12), color=plt.cm.tab20(range(12)))
    panels[2].set(xticks=range(12), yscale="log", ylim=(0.8, 1000))
    panels[0].set_ylabel(thing)
for panel in axes[:, :2].flat:
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
titles = ("Picture", "Word of each patch", "Patches of each word")
for panel, title in zip(axes[0], titles, strict=True):
    panel.set_title(title)
axes[1, 2].set_xlabel("word")
plt.show()

# %%
# One word is mostly background, and others are leaves of trees or caps of mushrooms. Real
# codebooks have five trees of a thousand leaves. Now we take 300 per tree, and patches of
# random places and sizes.

bag = BagOfWords(
    ERCForest(n_words=300, random_state=0),
    features=LocalFeatures("haar", patches=RandomPatches(600, max_size=0.3)),
    n_training_descriptors=20000,
    random_state=0,
)
words = bag.fit_transform(images[:n], labels[:n]).toarray()
learner = RLSClassifier(random_state=0).fit(words, labels[:n])
n_right = np.sum(learner.predict(bag.transform(images[n:]).toarray()) == labels[n:])
print(f"{words.shape[1]} words; {n_right} of {len(images) - n} test pictures are recognised")

# %%
# What speaks for a class
# -----------------------
#
# A word is evidence for the classes whose training patches fell into its leaf.
# :func:`~evergrow.vision.word_map` averages this evidence for one class at every place of an
# image; one half means that a place speaks for neither class.

figure, axes = plt.subplots(2, 6, figsize=(10, 3), layout="constrained")
for (above, below), image, thing in zip(axes.T, images[-6:], labels[-6:], strict=True):
    above.imshow(image)
    above.set_title(thing)
    shown = below.imshow(word_map(image, bag, None, thing), vmin=0.3, vmax=0.8)
for panel in axes.flat:
    panel.set_axis_off()
figure.colorbar(shown, ax=axes, ticks=[0.3, 0.5, 0.8], label="evidence for the class")
plt.show()

# %%
# Some things stand out, such as the first mushroom. Where the background is like that of
# training pictures of one class, it counts as much as the thing.
#
# What a word looks like
# ----------------------
#
# :func:`~evergrow.vision.leaf_patches` collects patches that fall into one leaf. For each class
# we take one leaf of the first tree: it occurs in many pictures of the class and in few of the
# other class.

in_first_tree = words[:, : bag.codebook_.words_per_tree_[0]]
figure, axes = plt.subplots(2, 10, figsize=(9, 2), layout="constrained")
for panels, thing in zip(axes, things, strict=True):
    mine = labels[:n] == thing
    word = int(np.argmax(in_first_tree[mine].mean(axis=0) - in_first_tree[~mine].mean(axis=0)))
    own_images = [images[place] for place in np.flatnonzero(mine)]
    patches, _ = leaf_patches(own_images, bag, None, tree=0, word=word, n=10, n_per_image=1)
    for panel, patch in zip(panels, patches, strict=False):
        panel.imshow(patch)
    for panel in panels:
        panel.set(xticks=[], yticks=[])
        panel.spines[:].set_visible(False)
    panels[0].set_ylabel(thing)
plt.show()

# %%
# A word is not the name of a part: it is a region of similar colours and shapes.
# :doc:`/codebooks` shows how to use words, with settings, other codebooks and limits.
