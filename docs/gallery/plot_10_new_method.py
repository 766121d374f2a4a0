"""
A new method in 30 lines
========================

A method of your own needs two functions: what it learns from posteriors of held-out
instances, and how it turns the posteriors of bags into prevalences. Intervals,
diagnosis, evaluation and saving then work without further code.
"""

import matplotlib.pyplot as plt
import numpy as np

import quanet
from quanet import ACC, APP, CC, EMQ, PACC, Gaussians

# %%
# ``RootPACC`` is an example that no paper has proposed: ``PACC`` on the square roots of
# the posteriors. With M the mean roots of each class, it solves M p = m for the mean
# roots m of a bag, and cuts negative prevalences off.


class RootPACC(quanet.AggregativeQuantifier):
    """PACC on the square roots of posteriors."""

    def _fit_aggregation(self, posteriors, codes):
        k = len(self.classes_)
        means = [np.sqrt(posteriors[codes == c]).mean(axis=0) for c in range(k)]
        with_sum = np.vstack([np.transpose(means), np.ones(k)])  # they sum to 1
        self.inverse_ = np.linalg.pinv(with_sum)

    def _aggregate(self, rows):
        if np.shape(rows)[-2] == 0:
            raise quanet.QuanetError("The bag is empty.")
        mean = np.sqrt(rows).mean(axis=-2)
        with_sum = np.concatenate([mean, np.ones_like(mean[..., :1])], axis=-1)
        solved = np.maximum(with_sum @ self.inverse_.T, 0)
        return solved / solved.sum(axis=-1, keepdims=True)


# %%
# ``check_quantifier`` tries the laws that every method must keep: estimates are on the
# simplex, the order of instances does not matter, perfect posteriors give the truth,
# and more. It raises an error that names the law that is broken.

quanet.check_quantifier(RootPACC(), k=2)
quanet.check_quantifier(RootPACC(), k=4)

# %%
# The new method is compared with others on the same bags, and it has intervals.

source = Gaussians(k=3, distance=2.0)
X, y = source.draw([0.6, 0.3, 0.1], 1500, rng=0)
X_new, y_new = source.draw([1 / 3, 1 / 3, 1 / 3], 6000, rng=1)
protocol = APP(bag_size=200, repeats=2)
errors = {}
for method in (CC(), ACC(), PACC(), RootPACC(), EMQ()):
    results = quanet.evaluate(method.fit(X, y), X_new, y_new, protocol, rng=2)
    errors[type(method).__name__] = 100 * results.error("ae").mean()
print(RootPACC().fit(X, y).predict_interval(X_new[:300]))

# %%
# The picture shows the mean absolute error of each method. On these data, the new one
# is a little better than ``PACC``, and ``EMQ`` is better than both.

figure, ax = plt.subplots(figsize=(5.6, 2.8))
colours = ["C2" if name == "RootPACC" else "C0" for name in errors]
bars = ax.barh(list(errors), list(errors.values()), color=colours, height=0.6)
ax.bar_label(bars, fmt="%.1f", padding=4)
ax.set(title="Mean absolute error of bags of 200", xlabel="points", ylim=(4.5, -0.5))
ax.grid(axis="y", visible=False)
plt.show()
