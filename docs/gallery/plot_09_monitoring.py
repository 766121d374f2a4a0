"""
Monitoring a share over time
============================

Every day brings a batch of texts. The share of complaints has a level, which changes
twice. A monitor finds when, and you may look at it after every batch: however often you
look, a false alarm between two changes has a probability of 5 % at most.
"""

import numpy as np
import pandas as pd
from matplotlib.ticker import PercentFormatter

from quanet import EMQ, Monitor, WordBags, monitor_figure

source = WordBags(length=14, preference=2.5)  # generated texts
names = np.array(["praise", "complaint"])
texts, codes = source.draw([0.6, 0.4], 800, rng=0)
quantifier = EMQ().fit(texts, names[codes])

# %%
# Ninety days with 40 to 120 texts each: 15 % complaints, from 1 March 28 %, from 25
# March 18 %.

monitor = Monitor(quantifier, window=7)
rng = np.random.default_rng(1)
for number, day in enumerate(pd.date_range("2026-02-01", periods=90)):
    share = 0.15 if number < 28 else 0.28 if number < 52 else 0.18
    batch, _ = source.draw([1 - share, share], int(rng.integers(40, 120)), rng=rng)
    estimate = monitor.update(batch, date=day)
    if estimate.found:
        since = pd.Timestamp(estimate.since)
        print(f"alarm on {day:%d %B}: the share has changed since {since:%d %B}")

# %%
# The changes that the monitor has found, with the level before and after.

history = monitor.history()
for change in history.changes:
    before, after = 100 * change.before[0], 100 * change.after[0]
    day = pd.Timestamp(change.date)
    print(f"{day:%d %B}: from {before:.0f} to {after:.0f} % complaints")

# %%
# The picture, drawn by ``monitor_figure``, shows every day as a dot, the level between
# changes with the range of 95 % of the days, and the changes as vertical lines.

figure = monitor_figure(history, label="complaint")
figure.set_size_inches(5.4, 3.8)
ax = figure.axes[0]
ax.legend(ncols=2, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1.0))
first_days = pd.date_range("2026-02-01", periods=4, freq="MS")
ax.set_xticks(first_days, ["Feb", "Mar", "Apr", "May"])
ax.yaxis.set_major_formatter(PercentFormatter(1, 0, " %"))
ax.tick_params(labelsize=9)
figure.suptitle("Share of complaints", fontsize=10, weight="bold")
figure
