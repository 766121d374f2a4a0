"""Peak memory of an evaluation: 1,000,000 posteriors, 10,000 bags of 1,000, each method in its own process.

python benchmarks/memory.py
"""

import resource
import subprocess
import sys
import time

METHODS = ("CC", "PACC", "EMQ")


def evaluate_one(name: str) -> None:
    import numpy as np

    import quanet

    source = quanet.Gaussians(distance=2.0)
    X, y = source.draw([0.5, 0.5], 1_000_000, rng=0)
    pool = source.posteriors(X, [0.5, 0.5])
    quantifier = getattr(quanet, name)("precomputed").fit(pool[:10_000], y[:10_000])
    before = time.perf_counter()
    results = quanet.evaluate(quantifier, pool, y, quanet.UPP(bag_size=1000, repeats=10_000), rng=1)
    seconds = time.perf_counter() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # kilobytes on Linux
    error = float(np.mean(results.error()))
    print(f"| {name} | {peak:.2f} GB | {seconds:.1f} s | {error:.4f} |", flush=True)


def main() -> None:
    if len(sys.argv) > 1:
        evaluate_one(sys.argv[1])
        return
    print("| 1,000,000 posteriors, 10,000 bags of 1,000 | peak memory | time | mean AE |", flush=True)
    print("|---|---|---|---|", flush=True)
    for name in METHODS:
        subprocess.run([sys.executable, __file__, name], check=True)


if __name__ == "__main__":
    main()
