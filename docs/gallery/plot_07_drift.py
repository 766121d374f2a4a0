"""
Drift: seen, measured, settled with labels
==========================================

A model has learned from eight products, and the reviews of a new product differ from
theirs in more than their shares. Then the estimate is biased. quanet sees the drift,
measures what it may cost, and a hundred labels settle it.
"""

from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

from quanet import EMQ, diagnose, plan_labels, refine

rng = np.random.default_rng(0)
styles = rng.normal(0, 0.5, (9, 5))  # how people write about each product


def draw_reviews(product, share, number):
    """Generated reviews as five measurements; the first shows whether they are poor."""
    poor = rng.permutation(np.arange(number) < share * number)
    X = rng.normal(styles[product], 1.0, (number, 5))
    X[:, 0] += 2 * poor
    return X, np.where(poor, "poor", "good")


parts = [draw_reviews(product, 0.5, 300) for product in range(8)]
X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
quantifier = EMQ().fit(X, y, groups=np.repeat(np.arange(8), 300))
X_new, y_new = draw_reviews(8, 0.2, 2000)

# %%
# **Seen and measured.** ``diagnose`` compares the new reviews with those of training.
# The interval includes what drift may cost; how much that is was learned by leaving out
# each of the eight products. Without drift, it would be narrow and wrong.

print(fill(str(diagnose(quantifier, X_new)["contents"])))
interval = quantifier.predict_interval(X_new)
print(interval)

# %%
# **Settled.** ``plan_labels`` chooses 100 reviews, a person labels them, and ``refine``
# combines labels and model. The result is valid under any drift.

plan = plan_labels(quantifier, X_new, n=100)
X_labelled, y_labelled = X_new[plan.indices], y_new[plan.indices]
design = {"design_weights": plan.design_weights, "strata": plan.strata}
refined = refine(quantifier, X_new, X_labelled, y_labelled, **design)
print(refined)

# %%
# The picture shows the three intervals for the share of poor reviews. Only the last two
# contain the truth, and the one with labels is narrower. More: :doc:`/how-to/labels`.

rows = {
    "as if only shares\nhad changed": interval.without_drift,
    "including drift": interval,
    "with 100 labels": refined,
}
figure, ax = plt.subplots(figsize=(5.6, 2.7))
ax.axvline(0.2, color="black", linestyle="--", linewidth=1)
ax.text(0.21, -0.55, "truth", va="center")
for place, found in enumerate(rows.values()):
    colour = ["C1", "C0", "C2"][place]
    ax.plot([found.lower[1], found.upper[1]], [place] * 2, colour, linewidth=3)
    ax.plot(found.estimate[1], place, "o", color=colour, markersize=8)
ax.set_yticks(range(3), rows)
ax.set(title="Share of poor reviews", xlim=(0, 0.6), ylim=(2.6, -0.8))
ax.xaxis.set_major_formatter(PercentFormatter(1, 0, " %"))
ax.grid(axis="y", visible=False)
plt.show()
