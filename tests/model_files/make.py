"""Write the file of the current format version that the tests keep.

Run once when a format version is released, never to mend a failing test:
``python -m tests.model_files.make``.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from evergrow import NCMForestClassifier
from evergrow.files import FORMAT_VERSION

if __name__ == "__main__":
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0)
    forest = NCMForestClassifier(4, random_state=0).fit(X_train, y_train)
    path = Path(__file__).parent / f"format{FORMAT_VERSION}.evergrow"
    forest.save(path)
    np.save(path.with_suffix(".npy"), forest.predict_proba(X_test[:50]))
