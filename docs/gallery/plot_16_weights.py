"""
The share of views instead of the share of posts
================================================

Few posts are read by many people. The share of negative posts and the share of views of
negative posts are different numbers; with weights, quanet estimates the second one.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

from quanet import EMQ, WordBags

source = WordBags(length=14, preference=2.5)  # generated posts
names = np.array(["positive", "negative"])
texts, codes = source.draw([0.6, 0.4], 1200, rng=0)
quantifier = EMQ().fit(texts, names[codes])

# %%
# In the new posts, one in six is negative, but negative posts are viewed more often.

posts, codes = source.draw([5 / 6, 1 / 6], 3000, rng=1)
is_negative = codes == 1
views = np.random.default_rng(2).lognormal(3, 1, 3000).round()
views[is_negative] *= 3
by_posts = quantifier.predict_interval(posts)
by_views = quantifier.predict_interval(posts, weights=views)
print(
    f"The {by_views.sizes} posts say as much as {by_views.effective_sizes} equal ones."
)

# %%
# The picture shows both shares with their intervals and the truth. The interval of
# views is wider, because it depends on fewer posts. More: :doc:`/how-to/weights`.

truth = [is_negative.mean(), views[is_negative].sum() / views.sum()]
figure, ax = plt.subplots(figsize=(5.6, 2.4))
for place, (found, true) in enumerate(zip([by_posts, by_views], truth, strict=True)):
    negative = list(found.classes).index("negative")
    ends = [found.lower[negative], found.upper[negative]]
    ax.plot(ends, [place] * 2, "C0", linewidth=3)
    ax.plot(found.estimate[negative], place, "oC0", markersize=8)
    ax.plot(true, place, "|k", markersize=18, mew=2)
    ax.text(true, place - 0.32, "truth", ha="center")
ax.set_yticks([0, 1], ["of posts", "of views"])
ax.set(title="Share of negative posts", xlim=(0, 0.6), ylim=(1.5, -0.7))
ax.xaxis.set_major_formatter(PercentFormatter(1, 0, " %"))
ax.grid(axis="y", visible=False)
plt.show()
