"""
Ordered classes
===============

Stars from 1 to 5 have an order: 4 stars are nearer to 5 than 1 star is, and
neighbouring classes usually have similar prevalences. ``OEMQ`` uses this, and
``match_distance`` measures errors by how far they go.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

from quanet import APP, EMQ, OEMQ, GridSearchQ, evaluate

rng = np.random.default_rng(0)


def draw_reviews(number):
    """Generated reviews: three noisy measurements of the stars."""
    stars = np.repeat(np.arange(1, 6), number // 5)
    return stars[:, None] + rng.normal(0, [1.0, 1.5, 2.0], (len(stars), 3)), stars


X, y = draw_reviews(1000)
X_new, y_new = draw_reviews(5000)

# %%
# ``OEMQ`` prefers prevalences that change smoothly from star to star. How strongly is
# chosen on held-out training data, by the match distance. Numbers are their own order;
# for other labels, pass ``order=["poor", "fair", "good"]``.

smooth = [
    [0.35, 0.3, 0.2, 0.1, 0.05],
    [0.05, 0.1, 0.2, 0.3, 0.35],
    [0.1, 0.2, 0.4, 0.2, 0.1],
    [0.3, 0.2, 0.1, 0.2, 0.2],
]
protocol = APP(bag_size=100, repeats=50, prevalences=smooth)
grid = {"strength": [0.01, 0.1, 1.0, 10.0]}
search = GridSearchQ(OEMQ(), grid, metric="md", protocol=protocol)
results = {}
for name, method in {"EMQ": EMQ(), "OEMQ": search}.items():
    results[name] = evaluate(method.fit(X, y), X_new, y_new, protocol, rng=1)
    print(f"{name}: mean match distance {results[name].error('md').mean():.3f}")
print("chosen:", search.best_setting_)

# %%
# The picture shows 50 bags of 100 reviews with the same true prevalences (grey bars),
# each estimated by both methods. The estimates of ``EMQ`` jump between neighbouring
# stars; those of ``OEMQ`` stay closer to the truth.

figure, axes = plt.subplots(1, 2, sharey=True, figsize=(5.8, 3.4))
for ax, colour, name in zip(axes, ["C1", "C0"], results, strict=True):
    stars, result = results[name].classes, results[name]
    ax.bar(stars, result.truth[0], color="0.85", width=0.8)
    ax.plot(stars, result.estimate[:50].T, color=colour, linewidth=0.8, alpha=0.35)
    ax.set(title=name, xlabel="stars", xticks=stars)
    ax.grid(axis="x", visible=False)
axes[0].yaxis.set_major_formatter(PercentFormatter(1, 0, " %"))
axes[0].set_ylabel("prevalence")
plt.show()
