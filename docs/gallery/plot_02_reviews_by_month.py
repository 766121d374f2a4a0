"""
Reviews by month
================

A year of reviews without labels, and a model that was trained on a few hundred labelled
ones: how did the share of negative reviews change?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import PercentFormatter

from quanet import EMQ, ByGroup, WordBags

source = WordBags(length=14, preference=2.2)  # generated reviews
names = np.array(["positive", "negative"])
texts, codes = source.draw([0.5, 0.5], 900, rng=0)
quantifier = EMQ().fit(texts, names[codes])

# %%
# The reviews of a year, as a table. A real table would not have the last column.

shares = [0.12, 0.12, 0.13, 0.15, 0.22, 0.34, 0.38, 0.35, 0.24, 0.16, 0.14, 0.13]
tables = []
for number, share in enumerate(shares, start=1):
    texts, codes = source.draw([1 - share, share], 150 + 10 * number, rng=number)
    month = f"2025-{number:02}"
    tables.append(pd.DataFrame({"month": month, "text": texts, "truth": names[codes]}))
reviews = pd.concat(tables, ignore_index=True)
print(reviews.head(3))

# %%
# One call estimates all months, with 95 % intervals. ``frame`` gives a table with a row
# for every month and class.

months = ByGroup(groups=reviews["month"]).bags()
found = quantifier.predict_interval_bags(reviews["text"], months).frame()
found = found[found["class"] == "negative"].set_index("group")
found["truth"] = (reviews["truth"] == "negative").groupby(reviews["month"]).mean()
print(found[["n", "estimate", "lower", "upper", "counted", "truth"]].round(2).head(3))

# %%
# The picture shows the estimates with their intervals, the plain count of predicted
# labels, and the truth. The count finds the peak but is too high in quiet months: many
# positive reviews are taken for negative ones.

figure, ax = plt.subplots()
ax.fill_between(found.index, found["lower"], found["upper"], alpha=0.18, linewidth=0)
ax.plot(found["estimate"], "o-", color="C0", linewidth=2, label="estimate")
ax.plot(found["counted"], "--", color="C1", label="plain count")
ax.plot(found["truth"], "_", color="black", markersize=13, mew=2, label="truth")
ax.set(title="Share of negative reviews in 2025", ylim=(0, 0.5))
ax.set_xticks(range(0, 12, 2), ["Jan", "Mar", "May", "Jul", "Sep", "Nov"])
ax.yaxis.set_major_formatter(PercentFormatter(1, 0, " %"))
ax.legend(loc="upper left")
plt.show()
