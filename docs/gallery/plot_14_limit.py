"""
How good can an estimate be?
============================

A classifier that confuses classes limits how well any method can estimate their
prevalences. The Cramér-Rao bound is this limit. It shows whether a better method, a
better classifier or a larger bag would help.
"""

import matplotlib.pyplot as plt
import numpy as np

from quanet import ACC, APP, CC, EMQ, Gaussians, cramer_rao_error, evaluate

source = Gaussians(distance=2.0)  # data with known densities
X, y = source.draw([0.5, 0.5], 20_000, rng=0)
X_new, y_new = source.draw([0.5, 0.5], 20_000, rng=1)
methods = {"CC": CC(), "ACC": ACC(), "EMQ": EMQ()}
for method in methods.values():
    method.fit(X, y)

# %%
# The bound needs calibrated posteriors of a pool; here the true ones are known. For
# your own data, ``pool_limit`` calibrates the posteriors first.

prevalence = [0.8, 0.2]
posteriors = source.posteriors(X_new, prior=[0.5, 0.5])
sizes = [50, 100, 200, 500, 1000, 2000]
errors = {name: [] for name in ["limit", *methods]}
for size in sizes:
    errors["limit"].append(cramer_rao_error(posteriors, prevalence, bag_size=size))
    protocol = APP(bag_size=size, repeats=400, prevalences=[prevalence])
    for name, method in methods.items():
        results = evaluate(method, X_new, y_new, protocol, rng=2)
        errors[name].append(results.error("ae").mean())

# %%
# The picture shows the mean error of 400 bags of each size. Counting stops improving:
# its error is a bias, which larger bags do not remove. Adjusting for the errors of the
# labels (``ACC``) removes it, and maximum likelihood (``EMQ``) comes close to the
# limit.

looks = {"limit": "--k", "CC": "o-C1", "ACC": "o-C2", "EMQ": "o-C0"}
figure, ax = plt.subplots()
for name, values in errors.items():
    ax.plot(sizes, 100 * np.array(values), looks[name], markersize=4, label=name)
ax.set(title="Error by bag size", xlabel="instances in a bag", ylabel="error, points")
ax.set(xscale="log", yscale="log")
ax.set_xticks(sizes, sizes)
ax.set_yticks([0.5, 1, 2, 5, 10], [0.5, 1, 2, 5, 10])
ax.minorticks_off()
ax.legend(loc="lower left")
plt.show()
