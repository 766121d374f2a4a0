"""
Features instead of texts
=========================

Quantifiers read tables of numbers as well as texts. Here, three measurements of every
customer show how many customers in each region are about to leave.
"""

import numpy as np
import pandas as pd

from quanet import EMQ, ByGroup

rng = np.random.default_rng(0)


def draw_customers(number, share):
    """Generated customers of which this share will leave."""
    leaves = rng.permutation(np.arange(number) < round(share * number))
    columns = {
        "visits": rng.poisson(np.where(leaves, 3, 6)),
        "minutes": rng.gamma(2, np.where(leaves, 8, 12)).round(1),
        "complaints": rng.poisson(np.where(leaves, 1.2, 0.5)),
    }
    return pd.DataFrame(columns), np.where(leaves, "leaving", "staying")


# %%
# Last year's customers have labels: a quarter of them left. Without a classifier,
# ``EMQ`` uses logistic regression for numbers; any scikit-learn classifier will do
# (:doc:`plot_11_custom_classifier`).

customers, labels = draw_customers(3000, 0.25)
quantifier = EMQ().fit(customers, labels)
print(customers.head(3))

# %%
# This year's customers of five regions have no labels.

shares = {"north": 0.08, "south": 0.15, "east": 0.3, "west": 0.22, "islands": 0.45}
parts = [draw_customers(rng.integers(250, 900), share) for share in shares.values()]
table = pd.concat([part for part, _ in parts], ignore_index=True)
regions = np.repeat(list(shares), [len(part) for part, _ in parts])
bags = ByGroup(groups=regions).bags()
interval = quantifier.predict_interval_bags(table, bags)
print(interval)

# %%
# The picture, drawn by ``Interval.plot``, shows the estimate of every region with its
# interval, and the plain count of predicted labels, which is too low where many leave.
# The marks of the truth are added here.

figure = interval.plot(focus="leaving", width=4.4)
true_labels = np.concatenate([part for _, part in parts])
truth = pd.Series(true_labels == "leaving").groupby(regions).mean()[bags.labels]
rows = np.arange(len(bags))[::-1]
ax = figure.axes[0]
ax.plot(truth, rows, "|k", markersize=12, mew=2, label="truth")
ax.legend(loc="lower right", fontsize=8)
ax.set_title("Customers who leave", fontsize=9)
figure
