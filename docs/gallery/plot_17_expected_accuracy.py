"""
Expected accuracy without labels
================================

If you also use the label of every single instance, you want to know how often it is
right in new data. The accuracy on the training data does not say: it changes with the
prevalences. ``predict_accuracy`` estimates it without labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

from quanet import EMQ, Gaussians, predict_accuracy

source = Gaussians(distance=1.8)
X, y = source.draw([0.75, 0.25], 2000, rng=0)
quantifier = EMQ().fit(X, y)

# %%
# The classifier has learned that class 1 is rare, and labels accordingly. New data
# contain more and more of class 1.

prevalences = np.linspace(0.05, 0.95, 10)
expected, truth = [], []
for seed, prevalence in enumerate(prevalences, start=1):
    X_new, y_new = source.draw([1 - prevalence, prevalence], 1500, rng=seed)
    accuracy = predict_accuracy(quantifier, X_new).accuracy
    expected.append([accuracy.estimate, accuracy.lower, accuracy.upper])
    truth.append(np.mean(quantifier.classifier_.predict(X_new) == y_new))
estimate, lower, upper = np.transpose(expected)
known = quantifier.held_out_
held_out = np.mean(known.inputs.argmax(axis=1) == known.codes)
print(f"accuracy on held-out training data: {held_out:.1%}")

# %%
# The picture shows the expected accuracy with its 95 % interval and the true accuracy.
# Both fall as class 1 becomes frequent. The accuracy on held-out training data (grey
# line) is right only where the prevalence is that of training.

figure, ax = plt.subplots()
ax.axhline(held_out, color="0.5", linestyle="--", label="on held-out training data")
ax.fill_between(prevalences, lower, upper, color="C0", alpha=0.2, linewidth=0)
ax.plot(prevalences, estimate, color="C0", linewidth=2, label="expected")
ax.plot(prevalences, truth, "_k", markersize=13, mew=2, label="truth")
ax.set(title="Accuracy of single labels", xlim=(0, 1), ylim=(0.5, 1))
ax.set_xlabel("true prevalence of class 1")
for axis in (ax.xaxis, ax.yaxis):
    axis.set_major_formatter(PercentFormatter(1, 0, " %"))
ax.legend(loc="lower left")
plt.show()
