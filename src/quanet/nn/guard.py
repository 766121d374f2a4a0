"""Whether a network may correct its base estimate: the test on held-out rows that it has to pass."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import ttest_1samp

from quanet.arrays import FloatArray, IntArray
from quanet.drift.scale import draw_bags_of_part
from quanet.metrics import absolute_error, kullback_leibler_divergence, relative_absolute_error
from quanet.nn.bag_pools import BagPool

PARTS = 10  # disjoint parts of the guard's pool, each one trial of network against base
FEWEST_PARTS = 6  # below which nothing can be shown
FEWEST_OF_CLASS = 10  # instances of every class in a part
BAGS, BAG_SIZE = 100, 200  # drawn from each part
LEVEL = 0.005  # of the t-test over parts
LEAST_GAIN = 0.05  # share of the base's error that the network has to remove


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the network is used, and the p-value of its gain: the largest over AE, RAE and KLD."""

    passes: bool
    p_value: float


def compare(
    base: Callable[[FloatArray], FloatArray],
    network: Callable[[FloatArray], FloatArray],
    pool: BagPool,
    *,
    rng: np.random.Generator,
) -> Verdict:
    """Compare two estimates (b, n, d) -> (b, k) on disjoint parts of a pool that neither has learned from.

    Bags of one pool share its instances, and with them its luck, so each part is one trial, not each bag.

    The network passes if, in AE, RAE and KLD alike, (1) the mean gain over the parts is significant, p < `LEVEL`;
    (2) it is at least `LEAST_GAIN` of the base's error; and (3) no part has a loss.
    """
    rarest = int(np.bincount(pool.codes, minlength=pool.k).min())
    parts = min(PARTS, rarest // FEWEST_OF_CLASS)
    if parts < FEWEST_PARTS:
        return Verdict(passes=False, p_value=1.0)
    before, after = np.empty((parts, 3)), np.empty((parts, 3))
    for at, part in enumerate(pool.parts((1.0,) * parts, rng=rng)):
        bags = part.draw(BAGS, BAG_SIZE, rng=rng)
        rows = part.rows[bags.indices]
        before[at], after[at] = (_errors(bags.prevalences, estimate(rows)) for estimate in (base, network))
    return judge(before, after)


def loses_on_parts(
    base: Callable[[FloatArray], FloatArray],
    network: Callable[[FloatArray], FloatArray],
    parts: list[tuple[FloatArray, IntArray]],
    k: int,
) -> bool:
    """Whether a network has larger errors than its base on left-out parts, in AE, RAE or KLD, on average over parts.

    Parts are rows (m, d) and classes (m,) that differ from the rest of the training data (`quanet.drift.scale`).
    """
    rng = np.random.default_rng(0)
    before, after = np.empty((len(parts), 3)), np.empty((len(parts), 3))
    for at, (rows, codes) in enumerate(parts):
        positions, truth = draw_bags_of_part(codes, k, rng)
        before[at], after[at] = (_errors(truth, estimate(rows[positions])) for estimate in (base, network))
    return bool((after.mean(axis=0) > before.mean(axis=0)).any())


def judge(before: FloatArray, after: FloatArray) -> Verdict:
    """The verdict on errors of base and network in every part, (parts, 3) each.

    Examples
    --------
    >>> base = np.full((10, 3), 0.02) + np.linspace(0, 0.001, 10)[:, None]
    >>> judge(base, 0.8 * base).passes, judge(base, 0.98 * base).passes
    (True, False)
    """
    gains = before - after
    p_value = float(np.max(ttest_1samp(gains, 0.0, axis=0, alternative="greater").pvalue))
    large = (gains.mean(axis=0) >= LEAST_GAIN * before.mean(axis=0)).all()
    return Verdict(passes=bool(p_value < LEVEL and large and gains.min() >= 0), p_value=p_value)


def _errors(truth: FloatArray, estimate: FloatArray) -> FloatArray:
    """Mean AE, RAE and KLD, as in the paper's table."""
    eps = 1 / (2 * BAG_SIZE)
    return np.array(
        [
            absolute_error(truth, estimate).mean(),
            relative_absolute_error(truth, estimate, eps=eps).mean(),
            kullback_leibler_divergence(truth, estimate, eps=eps).mean(),
        ]
    )
