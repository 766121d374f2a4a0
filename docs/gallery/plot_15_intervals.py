"""
Intervals that cover
====================

An interval of 95 % should contain the true prevalence in 95 of 100 bags. Where the
truth is known, this can be checked.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

from quanet import EMQ, UPP, Gaussians, predict_interval_bags

source = Gaussians(distance=1.5)
X, y = source.draw([0.5, 0.5], 1500, rng=0)
quantifier = EMQ().fit(X, y)

# %%
# A thousand bags of 100 instances, with prevalences drawn at random. They differ from
# the training data in their prevalences only, so the intervals leave out drift.

X_new, y_new = source.draw([0.5, 0.5], 20_000, rng=1)
bags = UPP(bag_size=100, repeats=1000).draw(y_new, rng=2)
interval = predict_interval_bags(quantifier, X_new, bags, drift=False)
truth, lower, upper = bags.prevalences[:, 1], interval.lower[:, 1], interval.upper[:, 1]
covered = (lower <= truth) & (truth <= upper)
print(f"{covered.mean():.1%} of the 95 % intervals contain the truth.")

# %%
# The picture shows the first 60 bags, ordered by their true prevalence. Orange
# intervals miss it. Intervals are narrower near 0 and 1, where estimates are more
# certain.

shown = np.argsort(truth[:60])
figure, ax = plt.subplots()
for colour, part in (("C0", covered[shown]), ("C1", ~covered[shown])):
    places = np.flatnonzero(part)
    ax.vlines(
        places, lower[shown][part], upper[shown][part], color=colour, linewidth=2.5
    )
ax.plot(truth[shown], "_k", markersize=5, mew=1.6, label="truth")
ax.set(title="95 % intervals of 60 bags", xlabel="bags, by true prevalence", xticks=[])
ax.yaxis.set_major_formatter(PercentFormatter(1, 0, " %"))
ax.legend(loc="upper left")
plt.show()
