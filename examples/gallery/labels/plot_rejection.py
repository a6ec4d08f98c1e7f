"""
Reject examples of unknown classes
==================================

A classifier names one of its classes, whatever it is shown.
:class:`~evergrow.RejectingClassifier` wraps a classifier and answers "unknown" to examples that
fit no class. We teach it the digits 0 to 7 and then also show it eights and nines.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from evergrow import RejectingClassifier, RLSClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
known = y_test < 8
model = RejectingClassifier(RLSClassifier(random_state=0), random_state=0)
model.fit(X[y < 8], y[y < 8])

answers = model.predict(X_test)
# Among numbers, the label for "unknown" is -1.
print("Answers to the first ten eights and nines:", answers[~known][:10])
print(f"Unknown: {np.mean(answers[~known] == -1):.0%} of the eights and nines")
print(f"Unknown: {np.mean(answers[known] == -1):.0%} of the digits that it knows")

# %%
# ``novelty`` is the score behind the decision: how little an example is like the classes. The
# level above which the answer is "unknown" follows from ``false_alarms``, the share of examples
# of *known* classes that you accept to be rejected. It may be changed at any time.

novelty = model.novelty(X_test)
shares = np.linspace(0.01, 0.5, 30)
unknown = [model.set_params(false_alarms=share).predict(X_test) == -1 for share in shares]
unknown = 100 * np.array(unknown)
model.set_params(false_alarms=0.1)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
bins = np.linspace(novelty.min(), np.quantile(novelty, 0.998), 40)
left.hist(novelty[known], bins, alpha=0.6, color="C0", label="0 to 7, known")
left.hist(novelty[~known], bins, alpha=0.6, color="C1", label="8 and 9, unknown")
left.axvline(model.level_, color="black", linestyle="--")
left.text(model.level_ + 0.1, 45, "level for 10 %\nfalse alarms")
left.set(xlabel="novelty", ylabel="test examples", title="Novelty")
left.legend()
right.plot(100 * shares, unknown[:, ~known].mean(axis=1), color="C1", label="of 8 and 9, unknown")
right.plot(100 * shares, unknown[:, known].mean(axis=1), color="C0", label="of 0 to 7, known")
right.plot(100 * shares, 100 * shares, ":", color="black", label="asked for")
right.set(xlabel="false_alarms, %", ylim=(0, 103), title='Answered "unknown", %')
right.grid()
right.legend()
plt.show()

# %%
# Known digits are rejected a little more often than asked for, eights and nines much more
# often. How much more depends on the features: see :doc:`/unknown` for measurements on
# photographs.
