"""Several judges of the same instances: their agreement, and their labels together as those of one judge."""

import numpy as np

from quanet.arrays import FloatArray, IntArray

PER_PATTERN = 10  # human-labelled instances with a combination of labels; rarer combinations are merged


def combine_labels(judged: IntArray, on_human: IntArray, k: int) -> tuple[IntArray, IntArray]:
    """The labels of b judges as those of one judge, whose labels are their combinations: (b, n), (b, m) -> (n,), (m,).

    How often each combination occurs in each class is measured on the human-labelled instances, so judges may depend on
    each other in any way. Combinations with few human labels are merged by the label that most judges gave; if there
    are several, by that of the first of these judges.

    Parameters
    ----------
    judged, on_human : labels as class numbers, of the instances to correct and of the human-labelled ones.
    k : number of classes.

    Examples
    --------
    >>> on_human = np.repeat([[0, 0, 1, 1], [0, 1, 0, 1]], [20, 15, 15, 20], axis=1)
    >>> cells, _ = combine_labels(np.array([[0, 0, 1, 1], [0, 1, 0, 1]]), on_human, 2)
    >>> cells
    array([0, 1, 2, 3])
    """
    powers = k ** np.arange(len(judged))[::-1]
    codes, codes_on_human = powers @ judged, powers @ on_human
    patterns, numbers = np.unique(codes_on_human, return_counts=True)
    frequent = patterns[numbers >= PER_PATTERN]
    merged = [
        np.where(np.isin(one, frequent), one, powers.sum() * k + _plurality(labels, k))
        for one, labels in ((codes, judged), (codes_on_human, on_human))
    ]
    names = np.unique(np.concatenate(merged))
    return np.searchsorted(names, merged[0]), np.searchsorted(names, merged[1])


def _plurality(labels: IntArray, k: int) -> IntArray:
    """The most frequent label of each column; among equally frequent ones, that of the first judge: (b, n) -> (n,)."""
    votes = (labels[..., None] == np.arange(k)).sum(axis=0).astype(float)
    first = np.argmax(votes[np.arange(labels.shape[1]), labels], axis=0)
    return np.asarray(labels[first, np.arange(labels.shape[1])])


def agreement(labels: IntArray, k: int) -> FloatArray:
    r"""Cohen's kappa of every pair of judges: (b, n) -> (b, b).

    .. math:: \kappa = (p_o - p_e) / (1 - p_e)

    with the share of equal labels :math:`p_o` and that expected by chance. Labels of -1 are missing.

    Examples
    --------
    >>> agreement(np.repeat([[0, 0, 1, 1], [0, 1, 0, 1]], [20, 5, 10, 15], axis=1), 2).round(2)
    array([[1. , 0.4],
           [0.4, 1. ]])
    """
    b = len(labels)
    kappa = np.ones((b, b))
    for one in range(b):
        for other in range(one):
            both = (labels[one] >= 0) & (labels[other] >= 0)
            pairs = np.bincount(labels[one][both] * k + labels[other][both], minlength=k * k).reshape(k, k)
            pairs = pairs / max(pairs.sum(), 1)
            chance = pairs.sum(axis=1) @ pairs.sum(axis=0)
            kappa[one, other] = kappa[other, one] = (np.trace(pairs) - chance) / (1 - chance) if chance < 1 else np.nan
    return kappa
