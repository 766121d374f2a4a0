"""The network of `QuaNet`, trained once and shipped with the package: distributions over the shares of bags.

Neither this module nor the network needs PyTorch: `quanet.kernels.compiled_network` runs it.
"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from scipy.stats import beta

from quanet.arrays import FloatArray, IntArray
from quanet.simplex import count, order_of_appearance

WEIGHTS = Path(__file__).with_name("share_network.safetensors")
LARGEST_BAG, LARGEST_HELD_OUT = 100_000, 20_000  # that the network was trained on; larger ones count as these
ENDS, BENT, BEND = 0.08, 0.22, 0.4  # the prior of shares in the simulator: exactly 0 or 1, and Beta(.4, .4)
# The part of the measured growth that the simulated classifiers do not have (docs/experiments/share-network.md).
GROWTH = 0.7
SHARPER = 0.5  # power that is added for a useless classifier and very few held-out instances
FEW = 100.0  # held-out instances of a class with which half of it is added
ROWS = 2**20  # numbers in memory at a time
MOST = 4_000  # held-out instances of three and more classes that are sorted anew for every bag


@dataclass(frozen=True, slots=True, eq=False)
class ShareCurves:
    """Distributions over a class's share in b bags, each over g nodes of its own.

    Attributes
    ----------
    nodes : (b, g) shares from 0 to 1, ascending, dense where the share is likely.
    chances : (b, g) their probabilities if all shares are about equally likely a priori.
    """

    nodes: FloatArray
    chances: FloatArray

    def quantile(self, level: float) -> FloatArray:
        """Shares (b,) below which the share lies with this probability.

        Half of a node's probability lies on either side of it; all of the first and the last, which are shares of
        exactly 0 and 1, lies there.

        Examples
        --------
        >>> curve = ShareCurves(np.array([[0.0, 0.2, 0.4, 1.0]]), np.array([[0.04, 0.46, 0.5, 0.0]]))
        >>> curve.quantile(0.025), curve.quantile(0.5).round(2)
        (array([0.]), array([0.3]))
        """
        cumulated = self.chances.cumsum(axis=1) - self.chances / 2
        cumulated[:, 0], cumulated[:, -1] = self.chances[:, 0], 1 - self.chances[:, -1]
        bags = np.arange(len(cumulated))
        above = np.clip((cumulated < level).sum(axis=1), 1, cumulated.shape[1] - 1)
        low, high = cumulated[bags, above - 1], cumulated[bags, above]
        part = np.clip((level - low) / np.maximum(high - low, 1e-12), 0, 1)
        first, last = self.nodes[bags, above - 1], self.nodes[bags, above]
        return first + part * (last - first)

    @property
    def mean(self) -> FloatArray:
        """Expected shares (b,)."""
        return (self.nodes * self.chances).sum(axis=1)

    @property
    def variance(self) -> FloatArray:
        """Variances (b,) of the shares."""
        return np.maximum((self.nodes**2 * self.chances).sum(axis=1) - self.mean**2, 0)

    @classmethod
    def joined(cls, parts: "list[ShareCurves]") -> "ShareCurves":
        """The distributions of all bags of the parts."""
        return cls(np.concatenate([part.nodes for part in parts]), np.concatenate([part.chances for part in parts]))

    def take(self, bags: IntArray) -> "ShareCurves":
        """The distributions of some of the bags."""
        return ShareCurves(self.nodes[bags], self.chances[bags])

    def of_the_rest(self) -> "ShareCurves":
        """The distributions of 1 minus the share."""
        return ShareCurves(1 - self.nodes[:, ::-1], self.chances[:, ::-1])

    def log_likelihood(self) -> FloatArray:
        """Log likelihoods (b, g) of the nodes, up to a constant for each bag: the prior of the simulator is removed.

        They say what these instances, and the held-out ones, tell about the share. So they can be multiplied with any
        prior, such as that of a group of bags.
        """
        return np.log(np.maximum(self.chances, 1e-300)) - self._log_prior()

    def sharpened(self, powers: FloatArray) -> "ShareCurves":
        """The distributions if the likelihoods have these powers (b,), which are at least 1.

        Examples
        --------
        >>> curve = ShareCurves(np.linspace(0, 1, 101)[None], np.full((1, 101), 1 / 101))
        >>> mirrored = curve.chances * np.exp(-8 * (curve.nodes - 0.5) ** 2)
        >>> curve = ShareCurves(curve.nodes, mirrored / mirrored.sum())
        >>> float((curve.sharpened(np.array([2.0])).variance / curve.variance)[0].round(1))
        0.6
        """
        prior = self._log_prior()
        logs = powers[:, None] * (np.log(np.maximum(self.chances, 1e-300)) - prior) + prior
        chances = np.exp(logs - logs.max(axis=1, keepdims=True))
        return ShareCurves(self.nodes, chances / chances.sum(axis=1, keepdims=True))

    def _log_prior(self) -> FloatArray:
        """Log probabilities (b, g) of the nodes in the simulator."""
        middles = (self.nodes[:, 1:] + self.nodes[:, :-1]) / 2
        below = (1 - ENDS - BENT) * middles + BENT * beta.cdf(middles, BEND, BEND)
        zeros = np.zeros((len(below), 1))
        prior = np.diff(np.hstack([zeros, below, zeros + 1 - ENDS]), axis=1)
        prior[:, [0, -1]] += ENDS / 2
        return np.log(np.maximum(prior, 1e-300))


@dataclass(frozen=True, slots=True, eq=False)
class KnownRows:
    """Held-out instances that shares are read from.

    Attributes
    ----------
    likelihoods : (m, k) of the instances, calibrated; each row up to a factor.
    codes : (m,) their classes.
    weights : (k,) how many instances each of them stands for; less than 1 if some are copies.
    order : (k,) the classes in an order that does not depend on their names. The network reads the share of the last.
    growth : how much larger scores of the final classifier are than those of these instances (`HeldOut.growth`).
    """

    likelihoods: FloatArray
    codes: IntArray
    weights: FloatArray
    order: IntArray
    growth: float = 0.0

    @classmethod
    def of(cls, likelihoods: FloatArray, codes: IntArray) -> "KnownRows":
        """Instances of k classes; of many, evenly spaced ones by rank."""
        k = likelihoods.shape[1]
        numbers = count(codes, k)
        most = (LARGEST_HELD_OUT if k == 2 else MOST) // k
        chosen = []
        for c in range(k):
            members = np.flatnonzero(codes == c)
            ranked = members[np.argsort(likelihoods[members, c], kind="stable")]
            kept = min(len(ranked), most)
            chosen.append(ranked[((np.arange(kept) + 0.5) * len(ranked) / max(kept, 1)).astype(np.intp)])
        taken = np.sort(np.concatenate(chosen))
        weights = numbers / np.maximum(count(codes[taken], k), 1)
        return cls(likelihoods[taken], codes[taken], weights, order_of_appearance(codes, k))

    def counting_as(self, sizes: FloatArray) -> "KnownRows":
        """The same instances, which count as so many of every class (k,) together, since some are copies."""
        return replace(self, weights=sizes / np.maximum(count(self.codes, len(sizes)), 1))

    def ratios_of(self, likelihoods: FloatArray) -> FloatArray:
        """Log-likelihood ratios (..., n) of the instances of bags, from likelihoods (..., n, 2)."""
        return log_ratios(likelihoods) * np.exp(-GROWTH * self.growth)

    def of_two(self) -> tuple[FloatArray, FloatArray]:
        """Log-likelihood ratios (1, m) of two classes, sorted, and how much they count for either class (1, m, 2)."""
        ratios = log_ratios(self.likelihoods[:, self.order])
        ranks = np.argsort(ratios, kind="stable")
        counts = np.eye(2)[self.codes] * self.weights
        return ratios[ranks][None], limited(counts[ranks][:, self.order])[None]

    def of_class(self, c: int, compositions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same for class c against the others, in bags where these have compositions (b, k) with 0 for c.

        Ratios (b, m), and how much they count (b, m, 2).
        """
        ratios = log_ratios(self.against(self.likelihoods[None], c, compositions))
        order = np.argsort(ratios, axis=1, kind="stable")
        own = self.codes == c
        numbers = self.sizes
        # The others count as many as a random part of a mixture with this composition would (Kish 1965).
        shares = compositions / np.maximum(numbers, 1e-12)
        effective = 1 / np.maximum((compositions * shares).sum(axis=1), 1e-12)
        counts = np.zeros((*ratios.shape, 2))
        counts[..., 1] = own * self.weights[c]
        counts[..., 0] = ~own * (shares * self.weights * effective[:, None])[:, self.codes]
        counts = np.take_along_axis(counts, order[..., None], axis=1)
        return np.take_along_axis(ratios, order, axis=1), np.stack([limited(one) for one in counts])

    @property
    def sizes(self) -> FloatArray:
        """How many independent instances of every class they are worth, (k,)."""
        return count(self.codes, len(self.weights)) * self.weights

    @staticmethod
    def against(likelihoods: FloatArray, c: int, compositions: FloatArray) -> FloatArray:
        """Likelihoods (b, n, 2) of the others together, and of class c: (b, n, k), (b, k) -> (b, n, 2)."""
        others = (likelihoods * compositions[:, None, :]).sum(axis=-1)
        own = np.broadcast_to(likelihoods[..., c], others.shape)
        return np.stack([others, own], axis=-1)


def log_ratios(likelihoods: FloatArray) -> FloatArray:
    """Log-likelihood ratios (...) of the second of two classes, from likelihoods (..., 2)."""
    safe = np.maximum(likelihoods, 1e-300)
    return np.log(safe[..., 1]) - np.log(safe[..., 0])


def limited(counts: FloatArray) -> FloatArray:
    """Counts (m, 2), no more of them than the network was trained on."""
    return counts * min(1.0, LARGEST_HELD_OUT / max(counts.sum(), 1e-12))


def read_two(known: KnownRows, likelihoods: FloatArray, sizes: FloatArray | IntArray | None = None) -> ShareCurves:
    """Shares of the last class of `known.order` in bags with likelihoods (b, n, 2), which count as so many (b,)."""
    return _read(*known.of_two(), known.ratios_of(likelihoods[..., known.order]), sizes)


def read_each(
    known: KnownRows, likelihoods: FloatArray, prevalences: FloatArray, sizes: FloatArray | IntArray | None = None
) -> list[ShareCurves]:
    """Shares of every class against the others, in bags with likelihoods (b, n, k) and likely prevalences (b, k)."""
    b, n, k = likelihoods.shape
    curves = []
    together = max(1, ROWS // (n + 3 * len(known.codes)))
    for c in range(k):
        others = prevalences.copy()
        others[:, c] = 0.0
        others /= others.sum(axis=1, keepdims=True)
        parts = []
        for start in range(0, b, together):
            some = slice(start, start + together)
            held, counts = known.of_class(c, others[some])
            ratios = known.ratios_of(known.against(likelihoods[some], c, others[some]))
            parts.append(_read(held, counts, ratios, None if sizes is None else sizes[some]))
        curves.append(ShareCurves.joined(parts))
    return curves


def powers(likelihoods: FloatArray, prevalences: FloatArray, known: FloatArray) -> FloatArray:
    r"""Powers (b, k) by which the network's likelihoods are sharpened: 1 if the classifier is perfect or m is large.

    With few held-out instances and a weak classifier its distributions are too wide (`docs/experiments`).

    .. math:: 1 + \frac{1 - s}{2 (1 + (m / 100)^2)}, \qquad s = \frac{E[(q - p)^2]}{p (1 - p)}

    with the posteriors q of a class at its prevalence p, and the harmonic mean m of the numbers of held-out instances
    of this class and of the others.

    Parameters
    ----------
    likelihoods : (b, n, k) of bags.
    prevalences : (b, k), neither 0 nor 1.
    known : (k,) numbers of held-out instances.

    Examples
    --------
    >>> certain, half, unknown = np.eye(2)[None], np.array([[0.5, 0.5]]), np.ones((1, 2, 2))
    >>> for likelihoods, m in ((certain, 100), (unknown, 100), (unknown, 10_000)):
    ...     print(powers(likelihoods, half, np.array([m, m])).round(2))
    [[1. 1.]]
    [[1.25 1.25]]
    [[1. 1.]]
    """
    posteriors = likelihoods * prevalences[:, None]
    posteriors /= posteriors.sum(axis=2, keepdims=True)
    explained = ((posteriors - prevalences[:, None]) ** 2).mean(axis=1)
    separation = np.clip(explained / (prevalences * (1 - prevalences)), 0, 1)
    m = 2 / (1 / np.maximum(known, 1e-12) + 1 / np.maximum(known.sum() - known, 1e-12))
    return 1 + SHARPER * (1 - separation) / (1 + (m / FEW) ** 2)


def _read(held: FloatArray, counts: FloatArray, ratios: FloatArray, sizes: FloatArray | IntArray | None) -> ShareCurves:
    from quanet import kernels

    b, n = ratios.shape
    weights, layers = network()
    nodes, chances = np.empty((b, kernels.GRID)), np.empty((b, kernels.GRID))
    number = np.full(b, float(n)) if sizes is None else np.asarray(sizes, dtype=float)
    of_instance = np.minimum(number, LARGEST_BAG) / n
    kernels.read_shares(held, counts, np.sort(ratios, axis=1), of_instance, weights, layers, nodes, chances)
    return ShareCurves(nodes, chances)


@cache
def network() -> tuple[Any, Any]:
    """The weights as the compiled network reads them: outside the layers of attention, and of each of these layers."""
    arrays = load_file(WEIGHTS)

    def turned(name: str) -> FloatArray:
        return np.ascontiguousarray(arrays[f"{name}.weight"].T)

    def dense(name: str) -> tuple[FloatArray, FloatArray]:
        return turned(name), arrays[f"{name}.bias"]

    recurrent: list[Any] = []
    for direction in ("l0", "l0_reverse"):
        into, state, *biases = (
            arrays[f"recurrent.{name}_{direction}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        recurrent += [np.ascontiguousarray(into.T), np.ascontiguousarray(state.T), sum(biases)]
    norm = arrays["normalise.weight"], arrays["normalise.bias"]
    layers = []
    for at in range(sum(name.endswith("norm1.weight") for name in arrays)):
        of = f"attend.{at}"
        into = np.ascontiguousarray(arrays[f"{of}.self_attn.in_proj_weight"].T)
        layers.append(
            (
                *(arrays[f"{of}.norm1.{name}"] for name in ("weight", "bias")),
                *(into, arrays[f"{of}.self_attn.in_proj_bias"], *dense(f"{of}.self_attn.out_proj")),
                *(arrays[f"{of}.norm2.{name}"] for name in ("weight", "bias")),
                *(*dense(f"{of}.linear1"), *dense(f"{of}.linear2")),
            )
        )
    outside = (*dense("enter"), *recurrent, *norm, *dense("curve"), *dense("combine"), *dense("leave"))
    return outside, tuple(layers)
