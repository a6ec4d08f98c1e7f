"""
From photographs to a model
===========================

:class:`~evergrow.ImageClassifier` learns from folders of images, one folder per class. A
network that was trained on photographs turns each image into features, and a learner that grows
stands behind it. The images here are drawn by :download:`pictures.py
</../examples/pictures.py>`; put folders of photographs in their place.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from pictures import write_pictures
from PIL import Image

import evergrow
from evergrow import Embedder, ImageClassifier

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
write_pictures(folder / "first", ["house", "fish", "flower"], range(9))
write_pictures(folder / "more", ["umbrella"], range(3))
test = write_pictures(folder / "test", ["house", "fish", "flower", "umbrella"], range(20, 25))

# %%
# Features of images are cached, so that no image is embedded twice.

model = ImageClassifier(Embedder(cache=folder / "cache"), random_state=0)
model.fit(folder / "first")
before = model.answer(test, k=1)

# %%
# Three pictures of a new class follow.

model.partial_fit(folder / "more")
after = model.answer(test, k=1)
print("Classes:", ", ".join(model.classes_))

# %%
# Each test picture has two answers: before the new class and, after the arrow, with it. The
# title is red if the second answer is wrong.

truth = np.array([path.parent.name for path in test])
for name, answers in (("before", before), ("after", after)):
    print(f"{name}: {np.mean(answers.labels == truth):.0%} of {len(test)} pictures are right")

figure, axes = plt.subplots(4, 5, figsize=(9, 6.4), layout="constrained")
for panel, path, *answers in zip(axes.flat, test, before.labels, after.labels, strict=True):
    panel.imshow(Image.open(path))
    panel.set_axis_off()
    right = answers[-1] == path.parent.name
    panel.set_title(" → ".join(answers), fontsize=9, color="C2" if right else "C1")
plt.show()

# %%
# A model can only answer with classes that it knows, so the first answers to umbrellas are
# wrong. After three pictures, most of them are right, and the answers to all other pictures are
# the same as before. To notice pictures of classes that were never taught, let the model answer
# "unknown": :ref:`sphx_glr_gallery_labels_plot_rejection.py`.
#
# The model is one file, which other processes load. On the command line, ``evergrow fit``,
# ``evergrow add`` and ``evergrow predict`` do the same (:doc:`/command_line`).

model.save(folder / "things.evergrow")
print(evergrow.load(folder / "things.evergrow").predict(test[:1]))
temporary.cleanup()
