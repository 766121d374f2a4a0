"""What to keep of many posteriors: lattices, and samples calibrated on sums, compared by the error of an estimate.

    python benchmarks/lattices.py -o benchmarks/results/lattices.md
    python benchmarks/lattices.py --rows 20000 --keep 2048 --classes 2      # small

EMQ estimates from what is kept. The error is the largest change of a share from the estimate of all rows, by one step
of Newton's method from there, which is precise where it is small. Posteriors are those of `benchmarks/summaries.py`.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from summaries import WORLDS, World, prevalences

FINE = 16  # bits of a coordinate
SCALES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "equal steps": lambda p: p,
    "square roots": np.sqrt,
    "fourth roots": lambda p: p**0.25,
    "logits to 12": lambda p: (np.clip(np.log(np.maximum(p, 1e-12) / np.maximum(1 - p, 1e-12)), -12, 12) + 12) / 24,
}
CALIBRATIONS: dict[str, tuple[float, ...] | None] = {
    "sample": None,
    "sample, calibrated on posteriors and classes": (),
    "the same and scores near .9": (0.0, 0.9),
    "the same and scores near .9 and .99": (0.0, 0.9, 0.99),
}


def cells(posteriors: np.ndarray, scale: str, keep: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and counts of at most so many cells, which are doubled along one class at a time."""
    k = posteriors.shape[1]
    steps = np.minimum((SCALES[scale](posteriors) * 2**FINE).astype(np.uint64), 2**FINE - 1)
    odd = np.random.default_rng(0).integers(2**63, size=k + 1, dtype=np.uint64) * 2 + 1

    def keys(level: int) -> np.ndarray:
        shifts = (level + np.arange(k)[::-1]) // k
        found = ((steps >> shifts.astype(np.uint64)) * odd[:k]).sum(axis=1, dtype=np.uint64)
        return np.asarray(found + posteriors.argmax(axis=1).astype(np.uint64) * odd[k])

    low, high = 0, FINE * k
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if len(np.unique(keys(middle))) <= keep else (middle + 1, high)
    _, codes, counts = np.unique(keys(low), return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(codes, column) for column in posteriors.T], axis=1) / counts[:, None]
    return means, counts.astype(float)


def controls(posteriors: np.ndarray, prior: np.ndarray, near: tuple[float, ...]) -> np.ndarray:
    """What is summed exactly: posteriors, predicted classes, and scores of the likelihood at some prevalences."""
    k = posteriors.shape[1]
    columns = [np.ones((len(posteriors), 1)), posteriors[:, 1:], np.eye(k)[posteriors.argmax(axis=1)][:, 1:]]
    ratios, uniform = posteriors / prior, np.full(k, 1 / k)
    for part in near:
        anchors = part * np.eye(k)[: 1 if part == 0 else k] + (1 - part) * uniform
        columns += [ratios[:, 1:] / (ratios @ anchor)[:, None] for anchor in anchors]
    return np.hstack(columns)


def calibrated(known: np.ndarray, sums: np.ndarray, total: float) -> np.ndarray:
    """Weights (m,) of a sample with which its controls (m, c) have these sums."""
    weights = np.full(len(known), total / len(known))
    gram, missing = (known * weights[:, None]).T @ known / total, (sums - weights @ known) / total
    scale = 1 / np.sqrt(np.maximum(np.diag(gram), 1e-30))
    solved = np.linalg.lstsq(gram * scale[:, None] * scale, missing * scale, rcond=1e-9)[0] * scale
    return np.asarray(weights * (1 + known @ solved))


def change(rows: np.ndarray, weights: np.ndarray, prior: np.ndarray, at: np.ndarray) -> np.ndarray:
    """One step of Newton's method for the likelihood of weighted rows, from prevalences `at`."""
    shares, present = weights / weights.sum(), at > 1e-7
    ratios = rows / prior
    scores = (ratios / (ratios @ at)[:, None])[:, present]
    m = int(present.sum())
    system = np.ones((m + 1, m + 1))
    system[:m, :m], system[m, m] = (scores * shares[:, None]).T @ scores, 0
    step = np.zeros(len(at))
    step[present] = np.linalg.solve(system, np.append(shares @ scores - 1, 0))[:m]
    return step


def errors(k: int, given: argparse.Namespace) -> dict[str, float]:
    """The largest error of each way to keep rows, over worlds and prevalences."""
    worst: dict[str, float] = dict.fromkeys([*SCALES, *CALIBRATIONS], 0.0)
    for number, (distance, temperature) in enumerate(WORLDS):
        world = World(k, distance, temperature, ["EMQ"], seed=10 * k + number)
        quantifier: Any = world.fitted["EMQ"]
        prior = quantifier.prior_
        for prevalence in prevalences(k).values():
            posteriors = world.bag(prevalence, given.rows, seed=1)[0].astype(float)
            rows, ones = quantifier.rows(posteriors), np.ones(len(posteriors))
            whole = quantifier.aggregate(rows[None])[0]
            for _ in range(3):
                whole = np.maximum(whole + change(rows, ones, prior, whole), 0)
            chosen = np.random.default_rng(3).permutation(len(rows))[: given.keep]
            for name in worst:
                if name in SCALES:
                    means, weights = cells(posteriors, name, given.keep)
                    kept = quantifier.rows(means)
                else:
                    near, kept, weights = CALIBRATIONS[name], rows[chosen], ones[chosen]
                    if near is not None:
                        known = controls(posteriors, prior, near)
                        weights = calibrated(known[chosen], known.sum(axis=0), float(len(rows)))
                worst[name] = max(worst[name], float(np.abs(change(kept, weights, prior, whole)).max()))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--keep", type=int, default=16_384, help="cells or rows")
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--output", "-o", type=Path)
    given = parser.parse_args()
    found = {k: errors(k, given) for k in given.classes}
    lines = [
        "# What to keep of many posteriors\n",
        "<!-- not run: a benchmark -->\n```console",
        "$ python benchmarks/lattices.py -o benchmarks/results/lattices.md\n```\n",
        f"Largest error of a share by EMQ from {given.keep:,} cells or rows of {given.rows:,}, over {len(WORLDS)} "
        "classifiers and 4 prevalences.\n",
        f"| kept | {' | '.join(f'{k} classes' for k in found)} |",
        "|---|" + "---|" * len(found),
    ]
    of_ways = {name: [of[name] for of in found.values()] for name in [*SCALES, *CALIBRATIONS]}
    lines += [f"| {name} | {' | '.join(f'{one:.1e}' for one in mine)} |" for name, mine in of_ways.items()]
    text = "\n".join(lines) + "\n"
    print(text) if given.output is None else given.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
