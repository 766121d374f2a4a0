"""How often intervals exclude 0 for a class at its detection limit, by simulation with known truth.

    python benchmarks/detection_limits.py

Every training set is drawn from normal distributions, one for each class, the rarest class with 10 % of the rows; then
bags with this class at its limit, at half of it, and without it. `Quantifier.detection_limits` promises 80 % at the
limit. Without the class, intervals exclude 0 by mistake.
"""

import argparse
import warnings

import numpy as np

import quanet
from quanet.drift.scale import without_drift

CELLS = [  # method, classes, training rows, standard deviations between classes, bag size
    *((method, 2, 1000, 2.0, 500) for method in ("EMQ", "PACC", "ACC", "QuaNet", "KDEyML")),
    *(("EMQ", 2, m, distance, 500) for m, distance in ((300, 2.0), (2000, 1.0), (1000, 3.0), (1000, 4.0))),
    ("EMQ", 2, 1000, 2.0, 5000),
    ("EMQ", 3, 1000, 2.0, 500),
    ("PACC", 3, 1000, 2.0, 500),
    ("EMQ", 5, 2000, 3.0, 500),
]
RARE = 0.1
BAGS = 20  # at every share
SLOW = {"KDEyML": 3}  # times fewer trainings


def detected(quantifier: quanet.Quantifier, source: quanet.Gaussians, share: float, n: int, seed: int) -> float:
    """The part of the intervals of the last class that exclude 0."""
    shares = np.append((1 - share) * quantifier.prior_[:-1] / quantifier.prior_[:-1].sum(), share)
    X = np.concatenate([source.draw(shares, n, rng=1000 * seed + b)[0] for b in range(BAGS)])
    bags = quanet.Bags(np.arange(BAGS * n).reshape(BAGS, n))
    return float((quantifier.predict_interval_bags(X, bags, drift=False).lower[:, -1] > 0).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trainings", type=int, default=12)
    trainings = parser.parse_args().trainings
    warnings.simplefilter("ignore")
    print("| method | classes | training rows | distance | bag | limit | at the limit | at half | without the class |")
    print("|---|---|---|---|---|---|---|---|---|")
    for method, k, rows, distance, n in CELLS:
        source, found = quanet.Gaussians(k=k, distance=distance), []
        for seed in range(max(2, trainings // SLOW.get(method, 1))):
            prior = np.append(np.full(k - 1, (1 - RARE) / (k - 1)), RARE)
            with without_drift():
                quantifier = getattr(quanet, method)().fit(*source.draw(prior, rows, rng=seed))
            limit = float(quantifier.detection_limits([n])[0, -1])
            shares = (limit, limit / 2, 0.0)
            found.append([limit, *(detected(quantifier, source, share, n, seed) for share in shares)])
        cells = [f"{100 * value:.1f} %" for value in np.mean(found, axis=0)]
        print("|", " | ".join([method, str(k), f"{rows:,}", f"{distance:g}", f"{n:,}", *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
