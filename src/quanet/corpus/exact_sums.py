"""Numbers of each row that are summed exactly, if only a sample of the rows is kept: control variates of the sample.

Methods read bags through a few kinds of numbers, such as likelihoods and histograms. If the weights of a sample are
calibrated on the sums over all rows (`samples`), its estimate is nearly that of all rows.
"""

import numpy as np

from quanet.arrays import FloatArray

# Prevalences at which posteriors are summed lie between the centre and corners, or sides without one class; this far
# from the centre. At the first ones, their products are summed, too.
TO_CORNERS_SQUARED = 0.8
TO_CORNERS, TO_SIDES = 0.99, 0.97
MOST_CLASSES = 10  # of more, posteriors are summed at the centre alone: there would be too many sums
# Where the bins of histograms begin: those of published methods, and finer ones near 0 and 1, where posteriors are.
NEAR_0 = np.array([1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2])
EDGES = np.concatenate([NEAR_0, np.arange(1, 32) / 32, 1 - NEAR_0[::-1]])
# The same for numbers of any size; whole ones are numbers of bins.
FEATURE_EDGES = np.concatenate([[-4, -3, -2, -1.5, -1, -0.5, -0.25, 0], EDGES, [1, 1.5], np.arange(2, 17), [32]])
MOST_BINS = 1500  # of all columns
FEW_EDGES = np.array([0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99])  # of posteriors, to sum embeddings by
OTHER_PREVALENCES = (0.05, 0.95)  # of two classes


def scores(likelihoods: FloatArray, *, products: bool) -> list[FloatArray]:
    r"""Posteriors (k - 1, n) that likelihoods L (n, k) give at a few prevalences a; products of all pairs at some.

    .. math:: r_c = \frac{a_c L_c}{\sum_j a_j L_j}

    An estimate by maximum likelihood depends on the rows mainly through these, and through their products, which say
    how they change with a.
    """
    k, by_class = likelihoods.shape[1], likelihoods.T.copy()
    squared, plain = _references(k, products=products)
    found = []
    for prevalence in squared:
        posteriors = _posteriors_at(prevalence, by_class)
        found += [posteriors[first:] * posteriors[first] for first in range(k)]
    return found + [_posteriors_at(prevalence, by_class)[1:] for prevalence in plain]


def _references(k: int, *, products: bool) -> tuple[FloatArray, FloatArray]:
    """The prevalences at which products of posteriors are summed (m, k), and those of posteriors alone."""
    centre, corners = np.full((1, k), 1 / k), np.eye(k)
    if k > MOST_CLASSES:
        return centre[:0], centre
    near = [(corners, TO_CORNERS_SQUARED), (corners, TO_CORNERS), ((1 - corners) / (k - 1), TO_SIDES)]
    around, *plain = (far * ends + (1 - far) * centre for ends, far in near)
    if products:
        return np.vstack([centre, around]), np.vstack(plain)
    return centre[:0], np.vstack([centre, around, *plain])


def _posteriors_at(prevalence: FloatArray, likelihoods: FloatArray) -> FloatArray:
    """Posteriors (k, n) at a prevalence (k,). A row is never rounded according to the rows next to it."""
    joint = likelihoods * prevalence[:, None]
    return joint / joint.sum(axis=0)


def histograms(columns: FloatArray, edges: list[FloatArray]) -> list[FloatArray]:
    """Whether each row is in each bin of each column (n, c) but the last bin; nothing if there are too many bins.

    Examples
    --------
    >>> histograms(np.array([[0.1], [0.6], [0.9]]), [np.array([0.5, 0.75])])[0]
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    if sum(map(len, edges)) > MOST_BINS:
        return []
    numbers = (np.searchsorted(starts, column, side="right") for column, starts in zip(columns.T, edges, strict=True))
    return [
        (bins == np.arange(len(starts))[:, None]).astype(float) for bins, starts in zip(numbers, edges, strict=True)
    ]


def two_class_scores(columns: FloatArray) -> list[FloatArray]:
    """Posteriors of two classes at two prevalences, if columns (n, c) are posteriors of one class at equal prevalences.

    Members of ensembles have such columns. Other numbers are clipped to [0, 1], which does no harm.
    """
    values = np.clip(columns, 0, 1).T
    return [share * values / (share * values + (1 - share) * (1 - values)) for share in OTHER_PREVALENCES]


def embedded(posteriors: FloatArray, embeddings: FloatArray) -> list[FloatArray]:
    """Squares of embeddings (n, e), and embeddings in each bin of each posterior (n, k) unless these are too many."""
    if not embeddings.shape[1]:
        return []
    found = [embeddings.T**2]
    if posteriors.shape[1] * len(FEW_EDGES) * embeddings.shape[1] <= MOST_BINS:
        bins = np.vstack(histograms(posteriors, [FEW_EDGES] * posteriors.shape[1]))
        found += [bins * column for column in embeddings.T]
    return found
