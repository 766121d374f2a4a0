"""
Differences between groups
==========================

Which products have more poor reviews than the others, and which differences are only
chance? Intervals of the single products do not answer this; ``difference_bags`` does.
"""

import matplotlib.pyplot as plt
import numpy as np

from quanet import EMQ, ByGroup, WordBags, difference_bags

source = WordBags(length=14, preference=2.5)  # generated reviews
names = np.array(["good", "poor"])
texts, codes = source.draw([0.6, 0.4], 800, rng=0)
quantifier = EMQ().fit(texts, names[codes])

# %%
# Seven products with 300 reviews each. Four of them have the same true share, 20 %.

products = ["lamp", "kettle", "radio", "toaster", "fan", "mixer", "iron"]
shares = np.array([0.2, 0.2, 0.34, 0.2, 0.1, 0.2, 0.26])
reviews = []
for seed, share in enumerate(shares, start=1):
    reviews += source.draw([1 - share, share], 300, rng=seed)[0]
bags = ByGroup(groups=np.repeat(products, 300)).bags()

# %%
# Every product is compared with the reviews of all others. Both sides are estimated by
# the same model, so that a part of its error cancels. The p-values include Holm's
# correction for the number of comparisons.

found = difference_bags(quantifier, reviews, bags, "rest")
print(found)

# %%
# The picture shows the differences in points with their 95 % intervals, ordered by
# size. Filled circles are significant after the correction. Black marks are the true
# differences.

truth = dict(zip(products, 100 * (shares - (shares.sum() - shares) / 6), strict=True))
table = found.frame().query("`class` == 'poor'").sort_values("difference")
figure, ax = plt.subplots(figsize=(5.6, 3.4))
ax.axvline(0, color="0.4", linewidth=1)
for place, row in enumerate(table.to_dict("records")):
    ax.plot([100 * row["lower"], 100 * row["upper"]], [place] * 2, "C0", linewidth=2)
    fill = "C0" if row["adjusted"] < 0.05 else "white"
    ax.plot(100 * row["difference"], place, "oC0", markersize=8, markerfacecolor=fill)
    ax.plot(truth[row["second"]], place, "|k", markersize=15, mew=2)
ax.set_yticks(range(len(table)), table["second"])
ax.set(title="Poor reviews, compared with the rest", xlabel="difference, points")
ax.grid(axis="y", visible=False)
plt.show()
