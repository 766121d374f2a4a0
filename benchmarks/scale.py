"""Time and memory at the size of LeQua's T1B: 28 classes, 5,000 bags of 1,000 from a pool of 25,000, held-out 5,000.

python benchmarks/scale.py                     # every method for any number of classes, each in its own process
python benchmarks/scale.py --bags 100 KDEyML
"""

import argparse
import resource
import subprocess
import sys
import time

K = 28
METHODS = ("PACC", "EMQ", "DMy", "EDy", "CvMy", "RUN", "Tikhonov", "KDEyML", "KDEyCS", "KDEyHD", "EDx", "KMM")
OF_FEATURES = ("EDx", "KMM")


def evaluate_one(name: str, bags: int) -> None:
    import numpy as np
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression

    import quanet

    source, uniform = quanet.Gaussians(k=K, distance=2.5), np.full(K, 1 / K)
    X, y = source.draw(uniform, 5000, rng=0)
    held, y_held = source.draw(uniform, 5000, rng=1)
    pool, y_pool = source.draw(uniform, 25_000, rng=2)
    method = getattr(quanet, name)
    if name in OF_FEATURES:
        quantifier = method()
    else:
        quantifier = method(FrozenEstimator(LogisticRegression(max_iter=1000).fit(X, y)))
    quantifier.fit(held, y_held)
    protocol = quanet.UPP(bag_size=1000, repeats=bags)
    quanet.evaluate(quantifier, pool, y_pool, quanet.UPP(bag_size=1000, repeats=2), rng=1)  # compiles
    start, before = time.perf_counter(), time.process_time()
    results = quanet.evaluate(quantifier, pool, y_pool, protocol, rng=0)
    wall, cpu = time.perf_counter() - start, time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # kilobytes on Linux
    print(f"| {name} | {bags:,} | {cpu:,.1f} | {wall:,.1f} | {peak:.2f} | {results.error().mean():.4f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", default=METHODS)
    parser.add_argument("--bags", type=int, default=5000)
    parser.add_argument("--here", action="store_true", help="run in this process; for one method")
    arguments = parser.parse_args()
    if arguments.here:
        evaluate_one(arguments.methods[0], arguments.bags)
        return
    print("| method | bags | CPU, s | wall, s | peak memory, GB | AE |", "|" + "---|" * 6, sep="\n", flush=True)
    for name in arguments.methods:
        subprocess.run([sys.executable, __file__, "--here", "--bags", str(arguments.bags), name], check=True)


if __name__ == "__main__":
    main()
