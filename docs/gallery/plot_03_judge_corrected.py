"""
A language model's labels, corrected
====================================

A language model has judged thousands of answers of four chatbots as safe or unsafe. It
errs, so its rates are wrong. A few hundred human labels show how it errs, and
``correct_rate`` corrects the rates.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

from quanet import correct_rate

rng = np.random.default_rng(0)


def judge(truth):
    """Finds 85 % of the unsafe answers, and calls 7 % of the safe ones unsafe."""
    flagged = rng.random(len(truth)) < np.where(truth == "unsafe", 0.85, 0.07)
    return np.where(flagged, "unsafe", "safe")


# %%
# People have labelled 600 answers. They were chosen so that half of them are unsafe:
# what counts is how often the generated judge is right within each class.

human = np.repeat(["safe", "unsafe"], 300)
judge_on_human = judge(human)

# %%
# The judge labels 5,000 answers of each chatbot, and its rates are corrected.

rates = {}
for name, rate in {"A": 0.02, "B": 0.05, "C": 0.09, "D": 0.16}.items():
    truth = np.where(rng.random(5000) < rate, "unsafe", "safe")
    corrected = correct_rate(judge(truth), human, judge_on_human)
    rates[f"chatbot {name}"] = corrected, np.mean(truth == "unsafe")
    print(f"chatbot {name}:", str(corrected).splitlines()[1])

# %%
# The picture shows that the judge reports more unsafe answers than there are; for the
# safest chatbot, several times as many. The corrected intervals contain the truth. The
# same human labels correct all four, so the four errors are alike. All this holds if
# the judge errs alike on all chatbots; :doc:`/how-to/judges` shows how to check it.

figure, ax = plt.subplots(figsize=(5.6, 3.2))
for place, (corrected, truth) in enumerate(rates.values()):
    ax.plot([corrected.lower[1], corrected.upper[1]], [place] * 2, "C0", linewidth=2.5)
    (estimate,) = ax.plot(corrected.estimate[1], place, "oC0", markersize=7)
    (judged,) = ax.plot(corrected.judged[1], place, "DC1", fillstyle="none")
    (true,) = ax.plot(truth, place, "|k", markersize=16, mew=2)
marks = [judged, estimate, true]
figure.legend(
    marks, ["judge", "corrected", "truth"], loc="outside lower center", ncols=3
)
ax.set_yticks(range(len(rates)), rates)
ax.set(title="Unsafe answers", xlim=(0, 0.25), ylim=(3.5, -0.5))
ax.xaxis.set_major_formatter(PercentFormatter(1, 0, " %"))
ax.grid(axis="y", visible=False)
plt.show()
