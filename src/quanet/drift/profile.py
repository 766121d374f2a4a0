r"""How far bags are from the training data, whatever their prevalences.

If a bag is a mixture of the training classes, its mean description is :math:`\sum_c p_c \mu_c` for some prevalences p.
The distance is the squared distance of its mean from the nearest such mixture, relative to the variance within classes.
What chance in the bag and in the training data contributes is subtracted, so that a mixture has distance 0 on average.
It is the maximum mean discrepancy of a linear kernel (Gretton et al. 2012).

The distance of a small bag is mostly noise. Bags of one file therefore share information: each distance is moved
towards their mean, the more so the noisier it is and the less the bags differ (empirical Bayes; Efron and Morris 1973).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.bags import CHUNK, Bags
from quanet.data.copies import count_copies
from quanet.drift.descriptions import Descriptions
from quanet.simplex import count, project

MIN_OF_CLASS = 10  # instances of each class


@dataclass(frozen=True, slots=True, eq=False)
class GroupDescriptions:
    """Descriptions of instances as sums over groups, for pools whose instances are not kept one by one.

    Attributes
    ----------
    sums : (g, e) of the descriptions, times the weights of the instances.
    squares : (g,) sums of their squared lengths, times the weights.
    totals : (g,) sums of the weights.
    squared_weights : (g,) sums of the squared weights.
    owner : (n,) the group of each row of the pool.
    """

    sums: FloatArray
    squares: FloatArray
    totals: FloatArray
    squared_weights: FloatArray
    owner: IntArray | NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.owner)

    def __getitem__(self, indices: IntArray) -> "GroupDescriptions":
        return GroupDescriptions(self.sums, self.squares, self.totals, self.squared_weights, self.owner[indices])

    def means(self, bags: Bags, copies: FloatArray) -> "BagMeans":
        """Means of bags that consist of whole groups; copies enlarge the variances of the means by factors (b,)."""
        owners, groups = self._pairs(bags)
        member = csr_matrix((np.ones(len(owners)), (owners, groups)), shape=(len(bags), len(self.sums)))
        totals, means = np.asarray(member @ self.totals), np.asarray(member @ self.sums)
        means /= totals[:, None]
        repeats = copies * (member @ self.squared_weights) / totals**2
        return BagMeans.from_moments(means, member @ self.squares / totals, repeats)

    def _pairs(self, bags: Bags) -> tuple[IntArray, IntArray]:
        """Bags and the groups in them, each pair once."""
        # The rows of a group are neighbours: only the first ones are compared with the bags, to need little memory.
        ends = np.cumsum(bags.lengths)
        firsts = [ends - bags.lengths]
        for start in range(1, len(bags.flat), CHUNK):
            some = self.owner[bags.flat[start - 1 : start + CHUNK]]
            firsts.append(start + np.flatnonzero(some[1:] != some[:-1]))
        at = np.unique(np.concatenate(firsts))
        pairs = np.unique(np.searchsorted(ends, at, side="right") * len(self.sums) + self.owner[bags.flat[at]])
        owners, groups = np.divmod(pairs, len(self.sums))
        return owners, groups


@dataclass(frozen=True, slots=True, eq=False)
class BagMeans:
    """Mean descriptions of bags.

    Attributes
    ----------
    means : (b, e).
    spreads : (b,) variance of the instances of a bag, summed over the dimensions.
    repeats : (b,) sum of the squared shares of the bag's different instances: 1 / n if there are no copies or weights.
    """

    means: FloatArray
    spreads: FloatArray
    repeats: FloatArray

    @classmethod
    def of(cls, descriptions: "Descriptions | GroupDescriptions", bags: Bags, hashes: Any = None) -> "BagMeans":
        """Means of bags of a pool with descriptions (n, e), or of bags of whole groups; `hashes` as in `Inputs`."""
        copies = count_copies(hashes, bags).factor
        if isinstance(descriptions, GroupDescriptions):
            return descriptions.means(bags, copies)
        member = membership(bags, len(descriptions))
        # Column by column, to save memory: descriptions of a large file are stored with few digits.
        means, squares = np.empty((len(bags), descriptions.shape[1])), np.zeros(len(bags))
        for at in range(descriptions.shape[1]):
            column = descriptions[:, at].astype(float)
            means[:, at] = member @ column
            squares += member @ column**2
        if bags.merged is None:
            weights = bags.relative_weights
            sums, squared = (np.bincount(bags.owners, values, minlength=len(bags)) for values in (weights, weights**2))
            repeats = squared / sums**2
        else:
            repeats = np.bincount(bags.owners, bags.merged.squares[bags.flat], minlength=len(bags)) / bags.totals**2
        return cls.from_moments(means, squares, repeats * copies)

    @classmethod
    def from_moments(cls, means: FloatArray, squares: FloatArray, repeats: FloatArray) -> "BagMeans":
        """From mean descriptions (b, e), mean squared lengths (b,) and `repeats` (b,)."""
        spreads = (squares - np.einsum("be,be->b", means, means)) / np.maximum(1 - repeats, 1e-12)
        return cls(means, np.maximum(spreads, 0.0), repeats)


def membership(bags: Bags, n: int) -> csr_matrix:
    """Each instance's share of the weight of each bag: (b, n), sparse."""
    bags.check_pool(n)
    weights = bags.relative_weights
    shares = weights / np.bincount(bags.owners, weights)[bags.owners]
    matrix = csr_matrix((shares, bags.flat, np.concatenate([[0], np.cumsum(bags.lengths)])), shape=(len(bags), n))
    matrix.sum_duplicates()
    return matrix


@dataclass(frozen=True, slots=True, eq=False)
class BagDistances:
    """Distances of bags from the nearest mixture of the training classes.

    Attributes
    ----------
    distances : (b,) 0 on average for a mixture; may be negative by chance.
    deviations : (b,) their standard deviations for a mixture.
    excesses : (b, e) mean of the bag minus that of the mixture.
    """

    distances: FloatArray
    deviations: FloatArray
    excesses: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Descriptions of the training classes.

    Attributes
    ----------
    means : (k, e).
    covariance : (e, e) within classes.
    traces : (k,) variances within each class.
    counts : (k,) instances.
    """

    means: FloatArray
    covariance: FloatArray
    traces: FloatArray
    counts: IntArray

    @classmethod
    def fit(cls, descriptions: Descriptions, codes: IntArray, k: int) -> "Profile | None":
        """Learn from descriptions (n, e) of classes (n,); None if a class has too few instances, or all are alike."""
        counts = count(codes, k)
        if counts.min() < MIN_OF_CLASS:
            return None
        values = np.asarray(descriptions, dtype=float)
        means = np.array([values[codes == c].mean(axis=0) for c in range(k)])
        centred = values - means[codes]
        traces = np.array([(centred[codes == c] ** 2).sum() for c in range(k)]) / (counts - 1)
        covariance = centred.T @ centred / (len(codes) - k)
        return cls(means, covariance, traces, counts) if np.trace(covariance) > 1e-9 else None

    @property
    def mean(self) -> FloatArray:
        """(e,) of all training instances."""
        return self.counts @ self.means / self.counts.sum()

    @property
    def noise(self) -> float:
        """The standard deviation of the distance of a mixture of all classes, times the number of instances."""
        return float(self._remaining(np.ones((1, len(self.means)), dtype=bool))[1][0])

    def _remaining(self, present: BoolArray) -> tuple[FloatArray, FloatArray]:
        """What chance contributes to distances from mixtures of some classes only, (b, k) -> (b,) each.

        The first is the share of the variance within classes in the directions across these mixtures; those along them
        are no distance. A nearest mixture that lacks a class leaves more directions across than one of all classes. The
        second is the standard deviation of a distance, times the number of instances.
        """
        total, squares = float(np.trace(self.covariance)), float((self.covariance**2).sum())
        patterns, which = np.unique(present, axis=0, return_inverse=True)
        found = np.zeros((len(patterns), 2))
        for at, pattern in enumerate(patterns):
            means = self.means[pattern]
            if len(means) > self.means.shape[1]:
                continue  # they span all directions
            axes = np.linalg.svd(means[1:] - means[0], full_matrices=False)[2]
            along = axes @ self.covariance
            within = along @ axes.T
            found[at] = total - np.trace(within), squares - 2 * (along**2).sum() + (within**2).sum()
        across, variances = np.maximum(found[which.ravel()], 0.0).T
        return across / total, np.sqrt(2 * variances) / total

    def compare(self, bags: BagMeans) -> BagDistances:
        """The distances of bags."""
        prevalences, excesses = self._nearest(bags)
        across, noise = self._remaining(prevalences > 0)
        by_chance = bags.repeats * bags.spreads + prevalences**2 / self.counts @ self.traces
        return self._distances(excesses, by_chance * across, by_chance * noise)

    def compare_pairs(self, bags: BagMeans, first: IntArray, second: IntArray) -> BagDistances:
        """The distances (q,) between bags at two positions (q,) each, beyond what their prevalences explain.

        It is 0 on average if both bags differ from the training data in the same way.
        """
        prevalences, excesses = self._nearest(bags)
        across, noise = self._remaining(prevalences > 0)
        chance = bags.repeats * bags.spreads
        by_class = (prevalences[first] - prevalences[second]) ** 2 / self.counts @ self.traces
        by_chance, deviations = (
            chance[first] * part[first] + chance[second] * part[second] + by_class * (part[first] + part[second]) / 2
            for part in (across, noise)
        )
        return self._distances(excesses[first] - excesses[second], by_chance, deviations)

    def _nearest(self, bags: BagMeans) -> tuple[FloatArray, FloatArray]:
        """Prevalences (b, k) of the nearest mixtures, without the noise of the training means; excesses (b, e)."""
        k, total = len(self.means), float(np.trace(self.covariance))
        gram = self.means @ self.means.T - np.diag(self.traces / self.counts)
        gram += 1e-6 * max(float(np.trace(gram)), total) * np.eye(k)
        system = np.block([[gram, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
        wanted = np.concatenate([bags.means @ self.means.T, np.ones((len(bags.means), 1))], axis=1)
        prevalences = project(np.linalg.solve(system, wanted.T).T[:, :k])
        excesses = prevalences @ self.means
        return prevalences, np.subtract(bags.means, excesses, out=excesses)  # of many bags, they need much memory

    def _distances(self, excesses: FloatArray, by_chance: FloatArray, deviations: FloatArray) -> BagDistances:
        """Distances from excesses (b, e), and what chance contributes to their squares and its deviation, (b,)."""
        total = float(np.trace(self.covariance))
        distances = (np.einsum("be,be->b", excesses, excesses) - by_chance) / total
        return BagDistances(distances, deviations / total, excesses)


def share_between(distances: FloatArray, deviations: FloatArray, least: float = 0.0) -> FloatArray:
    """Distances (b,) of the bags of one file, moved towards their mean according to their noise; at least 0.

    One standard error is subtracted from the mean, so that chance alone hardly ever gives a distance.

    Parameters
    ----------
    distances, deviations : (b,) measured.
    least : the smallest standard error of the mean, that of all instances together: bags may share instances.

    Examples
    --------
    Without noise nothing changes. If bags differ by no more than their noise, all get the same distance:

    >>> share_between(np.array([0.01, 0.03]), np.array([1e-6, 1e-6])).round(3)
    array([0.01, 0.03])
    >>> share_between(np.array([0.01, 0.03]), np.array([0.02, 0.02])).round(3)
    array([0.006, 0.006])
    """
    noise = np.maximum(deviations, 1e-12) ** 2
    weights = 1 / noise
    total = float(weights.sum())
    mean = float(weights @ distances) / total
    # The variance between bags, of which the noise is not a part (DerSimonian and Laird 1986).
    excess = float(weights @ (distances - mean) ** 2) - (len(distances) - 1)
    between = excess / max(total - float(weights @ weights) / total, 1e-12) if len(distances) > 1 else 0.0
    mean = max(0.0, mean - max(total**-0.5, least))
    if between <= 0:
        return np.full(len(distances), mean)
    return np.maximum(0.0, (distances / noise + mean / between) / (1 / noise + 1 / between))
