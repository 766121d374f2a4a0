"""Check whether labelled instances look like a random part, or were chosen by hand."""

import numpy as np
from scipy import stats

from quanet.arrays import BoolArray, FloatArray

CHOSEN = 0.001  # p-value below which labels are taken to be hand-picked


def random_part(posteriors: FloatArray, labelled: BoolArray) -> float:
    """P-value of the hypothesis that the labelled instances are a random part, judged by the posteriors (N, k).

    Two-sample Kolmogorov-Smirnov tests of every class, corrected for their number.

    Examples
    --------
    >>> posteriors = np.linspace(0, 1, 1000)[:, None] * [1, -1] + [0, 1]
    >>> every_tenth, first = np.arange(1000) % 10 == 0, np.arange(1000) < 100
    >>> random_part(posteriors, every_tenth) > 0.5, random_part(posteriors, first) < 1e-6
    (True, True)
    """
    if labelled.all() or not labelled.any():
        return 1.0
    columns = posteriors.T[1:] if posteriors.shape[1] == 2 else posteriors.T
    found = [stats.ks_2samp(one[labelled], one[~labelled], method="asymp").pvalue for one in columns]
    return min(1.0, len(found) * float(min(found)))


def in_one_place(labelled: BoolArray) -> bool:
    """Whether the labelled rows are concentrated in a part of the file, such as its first rows.

    Examples
    --------
    >>> in_one_place(np.arange(1000) < 100), in_one_place(np.arange(1000) % 10 == 0)
    (True, False)
    """
    places = np.flatnonzero(labelled)
    if len(places) in (0, len(labelled)):
        return False
    return bool(stats.kstest((places + 0.5) / len(labelled), "uniform").pvalue < CHOSEN)
