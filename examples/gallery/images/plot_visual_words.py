"""
Visual words of an ERC forest
=============================

An image is many small patches. Extremely randomised trees sort the patches into leaves, and
each leaf is a *visual word* (Moosmann et al., 2006; :doc:`/papers` says where the equations are
in the code). :class:`~evergrow.vision.BagOfWords` describes an image by the words that occur in
it. The pictures are drawn by :download:`pictures.py </../examples/pictures.py>`.
"""

import matplotlib.pyplot as plt
import numpy as np
from pictures import draw_picture

from evergrow import ERCForest, RLSClassifier
from evergrow.vision import BagOfWords, LocalFeatures, RandomPatches, leaf_patches, word_map

things = ["tree", "mushroom"]
images = [np.asarray(draw_picture(thing, seed)) for seed in range(25) for thing in things]
labels = np.tile(things, 25)
n = 38  # for training

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
# :doc:`/codebooks` has settings, other codebooks and limits.
