"""
Counting against quantification
===============================

A classifier makes errors. If you count its labels, these errors turn a small share into
a much larger one. Quantification learns how the classifier errs and reverses it.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

from quanet import APP, CC, EMQ, WordBags, evaluate

source = WordBags(length=12, preference=2.5)  # generated texts of two classes
texts, labels = source.draw([0.5, 0.5], 900, rng=0)
new_texts, new_labels = source.draw([0.5, 0.5], 4000, rng=1)

# %%
# Both methods use the same text classifier. ``CC`` counts its labels, ``EMQ`` corrects
# them. ``APP`` draws bags of 300 new texts whose share of class 1 goes from 1 to 99 %.

protocol = APP(bag_size=300, repeats=20)
results = {}
for method in (CC(), EMQ()):
    quantifier = method.fit(texts, labels)
    result = evaluate(quantifier, new_texts, new_labels, protocol, rng=2)
    results[type(method).__name__] = result
    print(f"{type(method).__name__}: {100 * result.error('ae').mean():.1f} points off")

# %%
# The picture shows the mean estimate of 20 bags at each true share, and the range of
# the middle 90 % of them. Counting draws every estimate towards 50 %, the share of the
# training texts. The corrected estimates follow the truth.

figure, ax = plt.subplots(figsize=(5.2, 4.6))
ax.plot([0, 1], [0, 1], "--k", linewidth=1, label="truth")
for colour, (name, result) in zip(["C1", "C0"], results.items(), strict=True):
    truth = result.truth[:: protocol.repeats, 1]
    estimate = result.estimate[:, 1].reshape(-1, protocol.repeats)
    low, high = np.quantile(estimate, [0.05, 0.95], axis=1)
    ax.fill_between(truth, low, high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(truth, estimate.mean(axis=1), color=colour, linewidth=2, label=name)
ax.set(title="Share of class 1", xlim=(0, 1), ylim=(0, 1))
ax.set(xlabel="true share", ylabel="estimated share")
for axis in (ax.xaxis, ax.yaxis):
    axis.set_major_formatter(PercentFormatter(1, 0, " %"))
ax.legend(loc="upper left")
plt.show()
