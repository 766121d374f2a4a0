"""
A custom classifier
===================

Every method works with any classifier that has ``fit`` and ``predict_proba``. Here it
is a list of good and bad words, which learns nothing. Counted, its labels are far off;
corrected, they are useful.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter
from sklearn.base import BaseEstimator, ClassifierMixin

from quanet import APP, CC, EMQ, evaluate

GOOD = ["good", "great", "fine", "lovely"]
BAD = ["bad", "poor", "broken", "awful"]
OTHER = ["the", "film", "plot", "was", "very", "with", "actors", "music", "and", "it"]
USE = {"positive": [0.30, 0.04, 0.66], "negative": [0.16, 0.16, 0.68]}  # how often


def draw_texts(number, rng):
    """Generated texts of six words; negative ones often contain good words, too."""
    labels = rng.permutation(np.resize(["positive", "negative"], number))
    words = [(GOOD, BAD, OTHER)[at] for at in range(3)]
    kinds = [rng.choice(3, 6, p=USE[label]) for label in labels.tolist()]
    return [" ".join(rng.choice(words[at]) for at in text) for text in kinds], labels


# %%
# The classifier. scikit-learn's base classes let quantifiers copy it.


class WordList(ClassifierMixin, BaseEstimator):
    """More good words than bad ones: positive."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        texts = [text.split() for text in X]
        good = np.array([sum(word in GOOD for word in text) for text in texts])
        bad = np.array([sum(word in BAD for word in text) for text in texts])
        positive = 1 / (1 + np.exp(bad - good))
        return np.column_stack([1 - positive, positive])


# %%
# Pipelines work the same way. A classifier that is already fitted goes in as
# ``FrozenEstimator(classifier)``; and if you have posteriors from elsewhere,
# ``EMQ("precomputed")`` reads them instead of instances.

rng = np.random.default_rng(0)
texts, labels = draw_texts(2000, rng)
new_texts, new_labels = draw_texts(4000, rng)
results = {}
for name, method in {"counted": CC(WordList()), "corrected": EMQ(WordList())}.items():
    quantifier = method.fit(texts, labels)
    protocol = APP(bag_size=400, repeats=10)
    results[name] = evaluate(quantifier, new_texts, new_labels, protocol, rng=1)

# %%
# The picture shows every bag as a dot. The word list takes many negative texts for
# positive ones; the correction has learned this from 2,000 labelled texts.

figure, ax = plt.subplots(figsize=(5.2, 4.6))
ax.plot([0, 1], [0, 1], "--k", linewidth=1, label="truth")
for colour, (name, result) in zip(["C1", "C0"], results.items(), strict=True):
    truth, estimate = result.truth[:, 1], result.estimate[:, 1]
    ax.plot(truth, estimate, "o", color=colour, markersize=3, alpha=0.5, label=name)
ax.set(title="Share of positive texts", xlim=(0, 1), ylim=(0, 1))
ax.set(xlabel="true share", ylabel="estimated share")
for axis in (ax.xaxis, ax.yaxis):
    axis.set_major_formatter(PercentFormatter(1, 0, " %"))
ax.legend(loc="upper left", markerscale=2)
plt.show()
