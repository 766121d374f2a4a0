"""
A Ray dataset
=============

For data that outgrow one machine. Workers of a Ray cluster read the rows where they
are, and only small summaries travel. The shares and intervals have the same digits as
on one machine.

This script needs the extra ``ray``: ``pip install 'quanet[plot,ray]'``.
"""

import numpy as np
import pandas as pd

import quanet.ray
from quanet import EMQ, QuanetError, WordBags, trend_figure

try:
    import ray
except ImportError:
    raise QuanetError("Ray is missing: pip install 'quanet[ray]'") from None

source = WordBags(length=14, preference=2.5)  # generated reviews
names = np.array(["positive", "negative"])
texts, codes = source.draw([0.6, 0.4], 600, rng=0)
model = EMQ().fit(texts, names[codes])

# %%
# A dataset in twelve blocks. Here Ray runs on this machine; on a cluster, it would come
# from ``ray.data.read_parquet("s3://bucket/reviews/")``.

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
parts = []
for month in range(1, 13):
    share = 0.2 + 0.15 * np.sin(month / 2)
    texts, _ = source.draw([1 - share, share], 300, rng=month)
    parts.append(pd.DataFrame({"date": f"2025-{month:02}-15", "text": texts}))
dataset = ray.data.from_pandas(parts)

# %%
# One call. ``by`` means what it means on the command line: here, one group for each
# month.

shares = quanet.ray.predict(dataset, model, by=["date:month"], text="text", workers=2)
ray.shutdown()
table = pd.DataFrame(shares.rows())
print(table[table["class"] == "negative"].iloc[:3, :6])

# %%
# Spark looks the same, with the extra ``spark``::
#
#     import quanet.spark
#
#     shares = quanet.spark.predict(df, model, by=["date:month"])
#
# More: :doc:`/how-to/ray`, :doc:`/how-to/spark`.
#
# The picture, drawn by ``trend_figure``, shows the share of negative reviews with its
# 95 % interval as a band, and the plain count of predicted labels.

figure = trend_figure(shares, focus="negative", width=4.8)
figure.axes[0].set_title("Share of negative reviews", fontsize=9)
figure
