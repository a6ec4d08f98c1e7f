"""
Export a model to ONNX, and check it
====================================

An ONNX file runs where Evergrow is not installed, such as in C++ or in a browser
(:doc:`/export`). We export four models and check that each file answers like its model.
"""

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from evergrow import NCMClassifier, NCMForestClassifier, RejectingClassifier, RLSClassifier
from evergrow.export import compare_onnx, save_onnx

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
models = {
    "RLSClassifier": RLSClassifier(random_state=0),
    "NCMClassifier": NCMClassifier(metric="mahalanobis"),
    "NCMForestClassifier": NCMForestClassifier(20, random_state=0),
    "RejectingClassifier": RejectingClassifier(RLSClassifier(random_state=0), random_state=0),
}

# %%
# :func:`~evergrow.export.compare_onnx` asks both about the same samples and measures how far
# they differ.

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
checked = {}
for name, model in models.items():
    path = folder / f"{name}.onnx"
    save_onnx(model.fit(X, y), path)
    checked[name] = compare_onnx(model, path, X_test, y_test)
    size = path.stat().st_size / 1000
    print(f"{name:<20} {size:4.0f} kB, {checked[name].agreement:.0%} same answers")

# %%
# This is all that another program does. The names of the classes are in the metadata of the
# file.

session = onnxruntime.InferenceSession(folder / "NCMForestClassifier.onnx")
classes = json.loads(session.get_modelmeta().custom_metadata_map["evergrow.classes"])
index, probabilities, _, _ = session.run(None, {"features": X_test.astype(np.float32)})
print("First answers:", [classes[place] for place in index[:10]])

# %%
# Probabilities of the forest and of its file lie on the diagonal. The file returns them in
# single precision, which explains differences of this size.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(models["NCMForestClassifier"].predict_proba(X_test).ravel(), probabilities.ravel(), ".")
left.set(xlabel="model", ylabel="ONNX file", title="Probabilities of all classes")
left.grid()
right.plot([one.largest_difference for one in checked.values()], list(checked), "o")
right.set(xscale="log", xlim=(1e-10, 1), title="Largest difference of a probability")
right.grid()
right.margins(y=0.2)
plt.show()
temporary.cleanup()
