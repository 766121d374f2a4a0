"""
Many classes
============

Twenty topics of support requests, most of them rare. All shares are estimated together,
so they sum to 100 %.
"""

import numpy as np

from quanet import EMQ, Gaussians, absolute_error

topics = [
    *["account", "billing", "cancel", "coupon", "damage", "delivery", "error"],
    *["feedback", "gift", "install", "invoice", "login", "newsletter", "order"],
    *["password", "payment", "refund", "return", "tracking", "warranty"],
]
source = Gaussians(k=20, distance=3.5)  # generated embeddings of the requests
X, codes = source.draw(np.full(20, 1 / 20), 3000, rng=0)
quantifier = EMQ().fit(X, np.array(topics)[codes])

# %%
# A new month has 1,500 requests. They differ from the training data in their shares
# only, so the interval leaves out drift.

shares = np.random.default_rng(3).dirichlet(np.full(20, 0.5))
X_new, new_codes = source.draw(shares, 1500, rng=1)
interval = quantifier.predict_interval(X_new, drift=False)
truth = np.bincount(new_codes, minlength=20) / len(new_codes)
print(f"EMQ: {100 * absolute_error(truth, interval.estimate):.2f} points off")
print(f"plain count: {100 * absolute_error(truth, interval.counted):.2f} points off")

# %%
# The picture, drawn by ``Interval.plot``, has a row for every topic, the most frequent
# first. The marks of the truth are added here. The plain count takes from the frequent
# topics and gives to the rare ones.

figure = interval.plot(width=4.4)
order = np.argsort(-interval.estimate, kind="stable")
rows = np.arange(20)[::-1]
ax = figure.axes[0]
ax.plot(truth[order], rows, "|k", markersize=11, mew=2, label="truth")
ax.legend(loc="lower right", fontsize=8)
ax.set_title("Shares of topics", fontsize=9)
figure
